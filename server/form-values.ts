import type { z } from 'zod'
import type { Form } from './multipart.ts'

type Schemas = Readonly<Record<string, z.ZodType>>

/**
 * The fields of a form as the JSON body that they stand for. A form has nothing but texts, so each is read in the first
 * way that the schema of its field takes: `null` as null, else as text, number or boolean; a repeated one as a list; and `name[key]` as
 * a member of an object. What fits in no way is left to the schema to refuse, and fields without a schema stay texts.
 */
export function formBody(fields: Form['fields'], shape: Schemas): Record<string, unknown> {
  const body: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  const objects = new Map<string, [key: string, text: string][]>()
  for (const [name, texts] of fields) {
    const [, object, key] = /^([^[\]]+)\[([^[\]]+)\]$/.exec(name) ?? []
    if (object !== undefined && key !== undefined) {
      objects.set(object, [...(objects.get(object) ?? []), [key, texts.at(-1)!]])
      continue
    }
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined
    body[name] = fitting(schema, texts.length === 1 ? ways(texts[0]!) : [texts, texts.map(plainly)])
  }
  for (const [name, members] of objects) {
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined
    const read = (how: (text: string) => unknown) => Object.fromEntries(members.map(([key, text]) => [key, how(text)]))
    body[name] ??= fitting(schema, [read(text => text), read(plainly)])
  }
  return body
}

/** What a lone text may stand for. */
const ways = (text: string): unknown[] => [text, plainly(text), [text], [plainly(text)]]

const numeral = /^-?\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?$/i

/** A text as what it looks like. */
function plainly(text: string): unknown {
  if (numeral.test(text)) return Number(text)
  if (text === 'true' || text === 'false') return text === 'true'
  return text === 'null' ? null : text
}

/** The first that the schema takes; where it takes none, the one that is worth telling about. */
function fitting(schema: z.ZodType | undefined, possible: readonly unknown[]): unknown {
  const [text, plain] = possible
  if (!schema) return text
  const takes = (value: unknown) => schema.safeParse(value).success
  // Who writes `null` where there need be nothing means that there is nothing.
  if (plain === null && takes(null)) return null
  return possible.find(takes) ?? plain
}
