import { z } from 'zod'
import { type Camel, camelCase } from '../http/request/query.ts'

/** The members whose value is a constant, or that of the record under the same name in camel case. */
type Known<Shape extends z.ZodRawShape, From> = {
  [Name in keyof Shape & string]: Shape[Name] extends z.ZodLiteral
    ? Name
    : Camel<Name> extends keyof From
      ? From[Camel<Name>] extends z.input<Shape[Name]>
        ? Name
        : never
      : never
}[keyof Shape & string]
type Own<Shape extends z.ZodRawShape, From> = Omit<z.input<z.ZodObject<Shape>>, Known<Shape, From>> &
  Partial<z.input<z.ZodObject<Shape>>>

type Read = (record: Readonly<Record<string, unknown>>) => unknown
/** How the members of each schema are read of a record. */
const known = new WeakMap<z.ZodObject, readonly (readonly [name: string, read: Read])[]>()

function readersOf(schema: z.ZodObject) {
  const before = known.get(schema)
  if (before) return before
  const made = Object.entries(schema.shape).map(([name, field]) => [name, readerOf(name, field)] as const)
  known.set(schema, made)
  return made
}

function readerOf(name: string, field: z.core.$ZodType): Read {
  if (field instanceof z.ZodLiteral) return () => field.value
  const own = camelCase(name)
  return name.endsWith('_at') ? record => seconds(record[own] as number | null) : record => record[own]
}

/** Returns a time in Unix seconds. */
export const seconds = <Time extends number | null>(ms: Time) => (ms === null ? null : Math.floor(ms / 1000)) as Time

/**
 * Returns a record as the API shows it: with the members of the schema, each as in `own`, else as in the record under the same
 * name in camel case. Times, whose names end in `_at`, become Unix seconds, and constants are added.
 */
export function viewOf<Shape extends z.ZodRawShape, From extends object>(
  schema: z.ZodObject<Shape>,
  record: From,
  own: Own<Shape, From>,
): z.input<z.ZodObject<Shape>> {
  const view: Record<string, unknown> = {}
  for (const [name, read] of readersOf(schema))
    view[name] = name in own ? own[name as keyof typeof own] : read(record as Readonly<Record<string, unknown>>)
  return view as z.input<z.ZodObject<Shape>>
}
