import type { Segment } from './references.ts'

/** As much of JSON Schema as zod writes. */
export interface Schema {
  type?: string | string[]
  properties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  items?: Schema | boolean
  prefixItems?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  required?: string[]
  $ref?: string
  $defs?: Record<string, Schema>
}

/** What a place in a value may hold: JSON types, or anything. */
export type Kinds = ReadonlySet<string> | 'anything'

/** What `walk` finds: the schemas of a place, one of which holds; nothing is known; or there is no such place. */
export type Found = readonly Schema[] | 'unknown' | 'missing'

/** Follows a path into the values that a schema allows. A place that one of several alternatives has is there. */
export function walk(root: Schema, path: readonly Segment[]): Found {
  let now: Found = alternatives(root, root)
  for (const step of path) {
    if (now === 'unknown' || now === 'missing') return now
    const found: Found[] = now.map(schema => within(schema, step, root))
    now = found.length === 1 ? found[0]! : together(found)
  }
  return now
}

function within(schema: Schema, step: Segment, root: Schema): Found {
  const inner = member(schema, step)
  return inner === true ? 'unknown' : inner === undefined ? 'missing' : alternatives(inner, root)
}

function together(found: readonly Found[]): Found {
  if (found.includes('unknown')) return 'unknown'
  const there = found.flatMap(one => (typeof one === 'string' ? [] : one))
  return there.length > 0 ? there : 'missing'
}

/** By what `walk` found: of one schema it finds the same list each time. */
const knownKinds = new WeakMap<object, Kinds>()

/** What can be there, as JSON types. */
export function kindsOf(found: Found): Kinds {
  if (found === 'unknown' || found === 'missing') return 'anything'
  const before = knownKinds.get(found)
  if (before) return before
  const kinds = kindsIn(found)
  knownKinds.set(found, kinds)
  return kinds
}

function kindsIn(found: readonly Schema[]): Kinds {
  const kinds = new Set<string>()
  for (const { type, enum: values, const: only } of found) {
    if (type !== undefined) for (const one of [type].flat()) kinds.add(one)
    else if (values) for (const value of values) kinds.add(jsonType(value))
    else if (only !== undefined) kinds.add(jsonType(only))
    else return 'anything'
  }
  return kinds
}

/** Whether something that is one of these may fit where those are expected: an integer is a number. */
export const mayFit = (given: Kinds, expected: Kinds): boolean =>
  given === 'anything' ||
  expected === 'anything' ||
  [...given].some(
    kind =>
      expected.has(kind) ||
      (kind === 'integer' && expected.has('number')) ||
      // A number that comes out of a result may well be a whole one.
      (kind === 'number' && expected.has('integer')),
  )

export const kindsText = (kinds: Kinds): string => (kinds === 'anything' ? 'anything' : [...kinds].join(' or '))

export const jsonType = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value

const knownAlternatives = new WeakMap<Schema, readonly Schema[] | 'unknown'>()

/** The schema without references and unions: each of them may hold. A part of one schema is part of no other. */
function alternatives(schema: Schema, root: Schema): readonly Schema[] | 'unknown' {
  const before = knownAlternatives.get(schema)
  if (before) return before
  const found = resolved(schema, root, 0)
  knownAlternatives.set(schema, found)
  return found
}

function resolved(schema: Schema, root: Schema, depth: number): readonly Schema[] | 'unknown' {
  if (depth > 16) return 'unknown'
  const target = schema.$ref === undefined ? schema : root.$defs?.[schema.$ref.replace('#/$defs/', '')]
  if (target === undefined) return 'unknown'
  const choices = target.anyOf ?? target.oneOf
  if (target.$ref !== undefined) return resolved(target, root, depth + 1)
  if (!choices) return target.allOf ? 'unknown' : [target]
  const found: Schema[] = []
  for (const choice of choices) {
    const those = resolved(choice, root, depth + 1)
    if (those === 'unknown') return 'unknown'
    found.push(...those)
  }
  return found
}

/** The schema of a member; true: anything may be there; undefined: nothing. */
function member(schema: Schema, step: Segment): Schema | true | undefined {
  if (typeof step === 'number') {
    const own = schema.prefixItems?.[step] ?? schema.items
    return own === false ? undefined : own === true || (own === undefined && isOpen(schema, 'array')) ? true : own
  }
  if (schema.properties && Object.hasOwn(schema.properties, step)) return schema.properties[step]
  const rest = schema.additionalProperties
  if (typeof rest === 'object') return Object.keys(rest).length === 0 ? true : rest
  return rest === true || isOpen(schema, 'object') ? true : undefined
}

/** Whether it says nothing about what such a value holds, though it may be one. */
const isOpen = ({ type, properties, items, prefixItems, enum: values, const: only }: Schema, kind: string): boolean =>
  values === undefined &&
  only === undefined &&
  (type === undefined || [type].flat().includes(kind)) &&
  (kind === 'array' ? items === undefined && prefixItems === undefined : properties === undefined)
