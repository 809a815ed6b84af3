import type { z } from 'zod'

/** One step of a path: the name of a member, or an index of a list. */
type Segment = string | number

/**
 * What a path into a value leads to, by the schema of the value. The schemas are followed as they are: JSON Schemas of
 * them take longer to make than a workflow of 200 nodes takes to be looked over.
 */
type Schema = z.core.$ZodType
type Def = z.core.$ZodTypes['_zod']['def']

/** What a place in a value may hold: JSON types, or anything. */
export type Kinds = ReadonlySet<string> | 'anything'

/** What `walk` finds: the schemas of a place, one of which holds; nothing is known; or there is no such place. */
export type Found = readonly Schema[] | 'unknown' | 'missing'

/** Follows a path into the values that a schema allows. A place that one of several alternatives has is there. */
export function walk(root: Schema, path: readonly Segment[]): Found {
  let now: Found = alternatives(root)
  for (const step of path) {
    if (now === 'unknown' || now === 'missing') return now
    now = now.length === 1 ? within(now[0]!, step) : together(now.map(schema => within(schema, step)))
  }
  return now
}

function within(schema: Schema, step: Segment): Found {
  const inner = member(defOf(schema), step)
  return typeof inner === 'string' ? inner : alternatives(inner)
}

function together(found: readonly Found[]): Found {
  if (found.includes('unknown')) return 'unknown'
  const there = found.flatMap(one => (typeof one === 'string' ? [] : one))
  return there.length > 0 ? there : 'missing'
}

const defOf = (schema: Schema): Def => (schema as z.core.$ZodTypes)._zod.def

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
  for (const schema of found) {
    const own = ownKinds(defOf(schema))
    if (own.length === 0) return 'anything'
    for (const kind of own) kinds.add(kind)
  }
  return kinds
}

/** Of a schema that is no union; none: it says nothing. */
function ownKinds(def: Def): string[] {
  switch (def.type) {
    case 'string':
    case 'boolean':
    case 'null':
    case 'array':
    case 'object':
      return [def.type]
    case 'template_literal':
      return ['string']
    case 'record':
      return ['object']
    case 'tuple':
      return ['array']
    case 'number':
      return [isWhole(def) ? 'integer' : 'number']
    case 'literal':
      return kindsOfValues(def.values)
    case 'enum':
      return kindsOfValues(Object.values(def.entries))
    default:
      return []
  }
}

/** As JSON Schema has it: numbers that are listed are numbers, also where each is a whole one. */
function kindsOfValues(values: readonly unknown[]): string[] {
  const types = new Set(values.map(value => (value === null ? 'null' : typeof value)))
  return types.size === 1 ? [...types] : values.map(jsonType)
}

const isWhole = (def: z.core.$ZodNumberDef): boolean =>
  [def, ...(def.checks ?? []).map(({ _zod }) => _zod.def)].some(
    one => 'format' in one && typeof one.format === 'string' && one.format.includes('int'),
  )

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
const Null = { _zod: { def: { type: 'null' } } } as Schema

/** The schema without what only surrounds it, and without unions: each of them may hold. */
function alternatives(schema: Schema): readonly Schema[] | 'unknown' {
  const before = knownAlternatives.get(schema)
  if (before) return before
  const found = resolved(schema, 0)
  knownAlternatives.set(schema, found)
  return found
}

function resolved(schema: Schema, depth: number): readonly Schema[] | 'unknown' {
  if (depth > 16) return 'unknown'
  const def = defOf(schema)
  switch (def.type) {
    case 'optional':
    case 'nonoptional':
    case 'default':
    case 'prefault':
    case 'catch':
    case 'readonly':
      return resolved(def.innerType, depth + 1)
    case 'lazy':
      return resolved(def.getter(), depth + 1)
    case 'nullable': {
      const inner = resolved(def.innerType, depth + 1)
      return inner === 'unknown' ? inner : [...inner, Null]
    }
    case 'union': {
      const found: Schema[] = []
      for (const option of def.options) {
        const those = resolved(option, depth + 1)
        if (those === 'unknown') return 'unknown'
        found.push(...those)
      }
      return found
    }
    case 'pipe':
      // What a preprocessed value must be is said by the schema behind it.
      return defOf(def.in).type === 'transform' ? resolved(def.out, depth + 1) : 'unknown'
    case 'intersection':
    case 'promise':
      return 'unknown'
    default:
      return [schema]
  }
}

/** The schema of a member, where it is known that there is one. */
function member(def: Def, step: Segment): Schema | 'unknown' | 'missing' {
  const isPlace = typeof step === 'number'
  switch (def.type) {
    case 'array':
      return isPlace ? def.element : 'missing'
    case 'tuple':
      return isPlace ? (def.items[step] ?? def.rest ?? 'missing') : 'missing'
    case 'record':
      return isPlace ? 'missing' : def.valueType
    case 'object':
      if (isPlace) return 'missing'
      if (Object.hasOwn(def.shape, step)) return def.shape[step]!
      return def.catchall === undefined || defOf(def.catchall).type === 'never' ? 'missing' : def.catchall
    default:
      return ownKinds(def).length === 0 ? 'unknown' : 'missing'
  }
}

/** Returns the member names that the schema lists for the object at a path; none where the schema lists none. */
export function membersAt(root: Schema, path: readonly Segment[] = []): string[] {
  const found = walk(root, path)
  return typeof found === 'string'
    ? []
    : found.flatMap(one => {
        const def = defOf(one)
        return def.type === 'object' ? Object.keys(def.shape) : []
      })
}
