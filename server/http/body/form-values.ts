import type { z } from 'zod'
import type { Form } from './multipart.ts'

type Schemas = Readonly<Record<string, z.ZodType>>

/**
 * Converts the fields of a form to a JSON body. A form contains only text, so each field is read in the first way that
 * its schema accepts: `null` as null, else as text, number or boolean; a repeated field as a list; and `name[key]` as a
 * member of an object. The schema refuses later what fits in no way. Fields without a schema stay text.
 */
export function formValues(fields: Form['fields'], shape: Schemas): Record<string, unknown> {
  const body: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  const objects = new Map<string, [key: string, text: string][]>()
  for (const [name, texts] of fields) {
    const [, object, key] = /^([^[\]]+)\[([^[\]]+)\]$/.exec(name) ?? []
    if (object !== undefined && key !== undefined) {
      objects.set(object, [...(objects.get(object) ?? []), [key, texts.at(-1)!]])
      continue
    }
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined
    body[name] = fitting(schema, texts.length === 1 ? readings(texts[0]!) : [texts, texts.map(literalOf)])
  }
  for (const [name, members] of objects) {
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined
    const read = (how: (text: string) => unknown) => Object.fromEntries(members.map(([key, text]) => [key, how(text)]))
    body[name] ??= fitting(schema, [read(text => text), read(literalOf)])
  }
  return body
}

/** Returns the values that a single text may mean. */
const readings = (text: string): unknown[] => [text, literalOf(text), [text], [literalOf(text)]]

const numeral = /^-?\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?$/i

/** Returns the number, boolean or null that a text looks like, else the text. */
function literalOf(text: string): unknown {
  if (numeral.test(text)) return Number(text)
  if (text === 'true' || text === 'false') return text === 'true'
  return text === 'null' ? null : text
}

/** Returns the first value that the schema accepts; if it accepts none, the one with the most helpful error. */
function fitting(schema: z.ZodType | undefined, possible: readonly unknown[]): unknown {
  const [text, literal] = possible
  if (!schema) return text
  const accepts = (value: unknown) => schema.safeParse(value).success
  // `null` in an optional field means null and not the text.
  if (literal === null && accepts(null)) return null
  return possible.find(accepts) ?? literal
}
