import type { SchemaNode } from './schema.ts'

/** JSON's types, with integers and other numbers distinguished. */
export type ValueKind = 'null' | 'boolean' | 'integer' | 'fraction' | 'string' | 'array' | 'object'
const kinds: readonly ValueKind[] = ['null', 'boolean', 'integer', 'fraction', 'string', 'array', 'object']

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

/** The combined own keywords of several schemas. Schemas of items and properties are lists, all of which apply. */
export interface SchemaShape {
  /** Returns the schema that has this keyword, to name it in an error message. */
  with(keyword: string): SchemaNode
  kinds: ReadonlySet<ValueKind>
  /** Whether `kinds` comes from a `type`, `enum` or `const`. */
  kindsGiven: boolean
  values: readonly unknown[] | undefined
  low: Bound | undefined
  high: Bound | undefined
  minLength: number
  maxLength: number
  patterns: readonly { source: string; schemaNode: SchemaNode }[]
  formats: readonly { name: string; schemaNode: SchemaNode }[]
  /** How many items have a schema for their position. */
  prefixLength: number
  item(index: number): readonly SchemaNode[]
  /** Whether a schema states anything about items after the prefix. */
  itemsGiven: boolean
  /** Undefined if no schema states it. */
  minItems: number | undefined
  maxItems: number
  /** Declared ones in their order. */
  properties: ReadonlySet<string>
  propertiesGiven: boolean
  required: ReadonlySet<string>
  property(name: string): readonly SchemaNode[]
  /** Schemas for undeclared properties; undefined if no schema states any. */
  additional: readonly SchemaNode[] | undefined
}

export function shapeOf(schemaNodes: readonly SchemaNode[], read: (schemaNode: SchemaNode) => Keywords): SchemaShape {
  const all = schemaNodes.map(schemaNode => ({ schemaNode, ...read(schemaNode) }))
  const given = all.flatMap(({ kinds: some }) => (some ? [some] : []))
  const valueLists = all.flatMap(({ values }) => (values ? [values] : []))
  const prefixLength = Math.max(0, ...all.map(({ prefix }) => prefix.length))
  const minimums = all.flatMap(({ minItems }) => minItems ?? [])
  const additional = all.flatMap(one => one.additional ?? [])
  return {
    with: keyword =>
      schemaNodes.find(({ schema }) => typeof schema === 'object' && Object.hasOwn(schema, keyword)) ?? schemaNodes[0]!,
    kinds: new Set(kinds.filter(kind => given.every(some => some.has(kind)))),
    kindsGiven: given.length > 0 || valueLists.length > 0,
    values: valueLists.length
      ? valueLists.reduce((common, some) => common.filter(value => some.some(one => equal(one, value))))
      : undefined,
    low: all.map(({ low }) => low).reduce(higher, undefined),
    high: all.map(({ high }) => high).reduce(lower, undefined),
    minLength: Math.max(0, ...all.map(({ minLength }) => minLength ?? 0)),
    maxLength: Math.min(...all.map(({ maxLength }) => maxLength ?? Number.POSITIVE_INFINITY)),
    patterns: all.flatMap(({ pattern, schemaNode }) =>
      pattern === undefined ? [] : [{ source: pattern, schemaNode }],
    ),
    formats: all.flatMap(({ format, schemaNode }) => (format === undefined ? [] : [{ name: format, schemaNode }])),
    prefixLength,
    item: index => all.flatMap(({ prefix, items }) => prefix[index] ?? items ?? []),
    itemsGiven: all.some(({ items }) => items !== undefined),
    minItems: minimums.length ? Math.max(...minimums) : undefined,
    maxItems: Math.min(...all.map(({ maxItems }) => maxItems ?? Number.POSITIVE_INFINITY)),
    properties: new Set(all.flatMap(({ properties }) => [...(properties?.keys() ?? [])])),
    propertiesGiven: all.some(({ properties }) => properties !== undefined),
    required: new Set(all.flatMap(({ required }) => required)),
    property: name => all.flatMap(one => one.properties?.get(name) ?? one.additional ?? []),
    additional: additional.length ? additional : undefined,
  }
}

/**
 * Returns the kinds of values to generate. A schema without a type is mostly meant for the type that its keywords are
 * about: `{properties: …}` for objects, although every string satisfies it.
 */
export function meantKinds(shape: SchemaShape): ReadonlySet<ValueKind> {
  if (shape.kindsGiven) return shape.kinds
  const meant: ValueKind[] = []
  if (shape.propertiesGiven || shape.required.size > 0 || shape.additional) meant.push('object')
  if (shape.prefixLength > 0 || shape.itemsGiven || shape.minItems !== undefined || Number.isFinite(shape.maxItems))
    meant.push('array')
  if (shape.minLength > 0 || Number.isFinite(shape.maxLength) || shape.patterns.length) meant.push('string')
  if (shape.low || shape.high) meant.push('integer', 'fraction')
  if (shape.formats.length) meant.push(...shape.formats.flatMap(({ name }) => kindsOfFormat(name)))
  return meant.length ? new Set(meant) : shape.kinds
}

/** OpenAPI's number formats apply to numbers, all others to strings. */
export function kindsOfFormat(name: string): readonly ValueKind[] {
  if (name === 'int32' || name === 'int64') return ['integer']
  return name === 'float' || name === 'double' ? ['integer', 'fraction'] : ['string']
}
