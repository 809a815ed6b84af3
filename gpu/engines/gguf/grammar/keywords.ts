import type { SchemaNode } from './schema.ts'

/** JSON's types, with integers and other numbers distinguished. */
export type ValueKind = 'null' | 'boolean' | 'integer' | 'fraction' | 'string' | 'array' | 'object'
export const kinds: readonly ValueKind[] = ['null', 'boolean', 'integer', 'fraction', 'string', 'array', 'object']

export interface Bound {
  value: number
  /** Whether the bound itself is excluded. */
  open: boolean
}

/** The own keywords of one schema object, parsed and validated. Missing ones are undefined or empty. */
export interface Keywords {
  kinds: ReadonlySet<ValueKind> | undefined
  values: readonly unknown[] | undefined
  low: Bound | undefined
  high: Bound | undefined
  minLength: number | undefined
  maxLength: number | undefined
  pattern: string | undefined
  format: string | undefined
  prefix: readonly SchemaNode[]
  items: SchemaNode | undefined
  minItems: number | undefined
  maxItems: number | undefined
  properties: ReadonlyMap<string, SchemaNode> | undefined
  required: readonly string[]
  additional: SchemaNode | undefined
  reference: SchemaNode | undefined
  allOf: readonly SchemaNode[]
  anyOf: readonly SchemaNode[] | undefined
  oneOf: readonly SchemaNode[] | undefined
  /** Whether the schema has keywords besides `$ref`, `allOf`, `anyOf` and `oneOf`. */
  asserts: boolean
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))
const annotations = words(
  'title description default examples $schema $comment deprecated readOnly writeOnly $defs definitions',
)
const inPlace = words('$ref allOf anyOf oneOf')
const assertions = words(
  'type enum const properties required additionalProperties items prefixItems minItems maxItems ' +
    'minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum',
)
const kindsOf: Record<string, readonly ValueKind[]> = {
  null: ['null'],
  boolean: ['boolean'],
  integer: ['integer'],
  number: ['integer', 'fraction'],
  string: ['string'],
  array: ['array'],
  object: ['object'],
}

/**
 * Reads one schema object; boolean schemas have no keywords. Throws Failure `unsupported_parameter` for keywords that
 * cannot be converted to a grammar, and `invalid_value` for invalid values of keywords.
 */
export function readKeywords({ schema, path, document }: SchemaNode): Keywords {
  const given = typeof schema === 'boolean' ? {} : schema
  const where = (keyword: string) => `${path}.${keyword}`
  const has = (keyword: string) => Object.hasOwn(given, keyword)
  const wrong = (keyword: string, what: string): never => document.invalid(where(keyword), what)
  for (const keyword of Object.keys(given)) {
    if (annotations.has(keyword) || inPlace.has(keyword) || assertions.has(keyword)) continue
    if (keyword === '$id' && document.root.schema === schema) continue
    document.unsupported(where(keyword), `no grammar is made of the keyword '${keyword}'`)
  }
  const list = (keyword: string): unknown[] | undefined => {
    if (!has(keyword)) return undefined
    const value = given[keyword]
    return Array.isArray(value) ? value : wrong(keyword, 'is no array')
  }
  const schemas = (keyword: string): SchemaNode[] | undefined => {
    const found = list(keyword)?.map((entry, at) => document.schemaNode(entry, `${where(keyword)}[${at}]`))
    return found?.length === 0 ? wrong(keyword, 'is empty; it needs at least one schema') : found
  }
  const schemaAt = (keyword: string) => (has(keyword) ? document.schemaNode(given[keyword], where(keyword)) : undefined)
  const count = (keyword: string): number | undefined => {
    if (!has(keyword)) return undefined
    const value = given[keyword]
    return Number.isSafeInteger(value) && (value as number) >= 0
      ? (value as number)
      : wrong(keyword, 'is no whole number from 0')
  }
  const bound = (keyword: string, open: boolean): Bound[] => {
    if (!has(keyword)) return []
    const value = given[keyword]
    return typeof value === 'number' && Number.isFinite(value) ? [{ value, open }] : wrong(keyword, 'is no number')
  }
  const string = (keyword: string): string | undefined => {
    if (!has(keyword)) return undefined
    const value = given[keyword]
    return typeof value === 'string' ? value : wrong(keyword, 'is no string')
  }
  const types = (): Set<ValueKind> | undefined => {
    if (!has('type')) return undefined
    const names = [given.type].flat()
    if (names.length === 0) wrong('type', 'is empty')
    return new Set(
      names.flatMap(name =>
        typeof name === 'string' && Object.hasOwn(kindsOf, name)
          ? kindsOf[name]!
          : wrong('type', `holds ${JSON.stringify(name)}; types are ${Object.keys(kindsOf).join(', ')}`),
      ),
    )
  }
  const properties = (): Map<string, SchemaNode> | undefined => {
    if (!has('properties')) return undefined
    const value = given.properties
    if (typeof value !== 'object' || value === null || Array.isArray(value)) wrong('properties', 'is no object')
    return new Map(
      Object.entries(value as object).map(([name, entry]) => [
        name,
        document.schemaNode(entry, `${where('properties')}.${name}`),
      ]),
    )
  }
  const required = (list('required') ?? []).map(name =>
    typeof name === 'string' ? name : wrong('required', 'holds something that is no string'),
  )
  if (Array.isArray(given.items))
    document.unsupported(where('items'), "a list of schemas is written as 'prefixItems' since 2020-12")
  const reference = string('$ref')
  return {
    kinds: types(),
    values: has('const')
      ? [given.const].filter(value => list('enum')?.some(one => equal(one, value)) ?? true)
      : list('enum'),
    low: [...bound('minimum', false), ...bound('exclusiveMinimum', true)].reduce(higher, undefined),
    high: [...bound('maximum', false), ...bound('exclusiveMaximum', true)].reduce(lower, undefined),
    minLength: count('minLength'),
    maxLength: count('maxLength'),
    pattern: string('pattern'),
    format: string('format'),
    prefix: schemas('prefixItems') ?? [],
    items: schemaAt('items'),
    minItems: count('minItems'),
    maxItems: count('maxItems'),
    properties: properties(),
    required,
    additional: schemaAt('additionalProperties'),
    reference: reference === undefined ? undefined : document.target(reference, where('$ref')),
    allOf: schemas('allOf') ?? [],
    anyOf: schemas('anyOf'),
    oneOf: schemas('oneOf'),
    asserts: Object.keys(given).some(keyword => assertions.has(keyword)),
  }
}

/** Returns the stricter of two lower bounds. */
export function higher(a: Bound | undefined, b: Bound | undefined): Bound | undefined {
  if (!a || !b) return a ?? b
  return a.value > b.value || (a.value === b.value && a.open) ? a : b
}
/** Returns the stricter of two upper bounds. */
export function lower(a: Bound | undefined, b: Bound | undefined): Bound | undefined {
  if (!a || !b) return a ?? b
  return a.value < b.value || (a.value === b.value && a.open) ? a : b
}

/** Whether two JSON values are equal. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length &&
    keys.every(
      key => Object.hasOwn(b, key) && equal((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
    )
  )
}
