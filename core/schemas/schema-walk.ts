import type { z } from 'zod'

/** One step of a path: the name of a member, or an index of a list; a negative one stands for every item. */
type Segment = string | number

/**
 * Finds the schema at a path of a value. It reads zod schemas directly, because converting them to JSON Schema takes
 * longer than validating a workflow of 200 nodes.
 */
type Schema = z.core.$ZodType
type Def = z.core.$ZodTypes['_zod']['def']

/** JSON types that a value may have, or anything. */
export type Kinds = ReadonlySet<string> | 'anything'

/** Result of `walk`: schemas of which one applies; `unknown` if the schema does not tell; `missing` if there is no such path. */
export type SchemasAtPath = readonly Schema[] | 'unknown' | 'missing'

/** Follows a path into the values that a schema allows. The path exists if one of several alternatives has it. */
export function walk(root: Schema, path: readonly Segment[]): SchemasAtPath {
  let found: SchemasAtPath = alternatives(root)
  for (const step of path) {
    if (found === 'unknown' || found === 'missing') return found
    found = found.length === 1 ? within(found[0]!, step) : merge(found.map(schema => within(schema, step)))
  }
  return found
}

function within(schema: Schema, step: Segment): SchemasAtPath {
  const inner = member(defOf(schema), step)
  return typeof inner === 'string' ? inner : alternatives(inner)
}

function merge(found: readonly SchemasAtPath[]): SchemasAtPath {
  if (found.includes('unknown')) return 'unknown'
  const schemas = found.flatMap(one => (typeof one === 'string' ? [] : one))
  return schemas.length > 0 ? schemas : 'missing'
}

const defOf = (schema: Schema): Def => (schema as z.core.$ZodTypes)._zod.def

/** Keyed by the result of `walk`, which is the same list for the same schema. */
const knownKinds = new WeakMap<object, Kinds>()

/** Returns the JSON types that the found schemas allow. */
export function kindsOf(found: SchemasAtPath): Kinds {
  if (found === 'unknown' || found === 'missing') return 'anything'
  const cached = knownKinds.get(found)
  if (cached) return cached
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

/** Returns the JSON types of a schema that is not a union; none if the schema does not tell. */
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

/** As in JSON Schema, a list of numbers has the type `number`, also if all of them are integers. */
function kindsOfValues(values: readonly unknown[]): string[] {
  const types = new Set(values.map(value => (value === null ? 'null' : typeof value)))
  return types.size === 1 ? [...types] : values.map(jsonType)
}

const isWhole = (def: z.core.$ZodNumberDef): boolean =>
  [def, ...(def.checks ?? []).map(({ _zod }) => _zod.def)].some(
    one => 'format' in one && typeof one.format === 'string' && one.format.includes('int'),
  )

/** Whether a value of the given types may be valid where other types are expected: an integer is a number. */
export const mayFit = (given: Kinds, expected: Kinds): boolean =>
  given === 'anything' ||
  expected === 'anything' ||
  [...given].some(
    kind =>
      expected.has(kind) ||
      (kind === 'integer' && expected.has('number')) ||
      // A number in a result may be an integer.
      (kind === 'number' && expected.has('integer')),
  )

export const kindsText = (kinds: Kinds): string => (kinds === 'anything' ? 'anything' : [...kinds].join(' or '))

export const jsonType = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value

const knownAlternatives = new WeakMap<Schema, readonly Schema[] | 'unknown'>()
const Null = { _zod: { def: { type: 'null' } } } as Schema

/** Unwraps a schema (optional, default, …) and expands unions: any of the returned schemas may apply. */
function alternatives(schema: Schema): readonly Schema[] | 'unknown' {
  const cached = knownAlternatives.get(schema)
  if (cached) return cached
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
        const schemas = resolved(option, depth + 1)
        if (schemas === 'unknown') return 'unknown'
        found.push(...schemas)
      }
      return found
    }
    case 'pipe':
      // For a preprocessed value the output schema applies.
      return defOf(def.in).type === 'transform' ? resolved(def.out, depth + 1) : 'unknown'
    case 'intersection':
    case 'promise':
      return 'unknown'
    default:
      return [schema]
  }
}

/** Returns the schema of a member or list item. */
function member(def: Def, step: Segment): Schema | 'unknown' | 'missing' {
  const isIndex = typeof step === 'number'
  switch (def.type) {
    case 'array':
      return isIndex ? def.element : 'missing'
    case 'tuple':
      if (!isIndex) return 'missing'
      return step < 0 ? 'unknown' : (def.items[step] ?? def.rest ?? 'missing')
    case 'record':
      return isIndex ? 'missing' : def.valueType
    case 'object':
      if (isIndex) return 'missing'
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
