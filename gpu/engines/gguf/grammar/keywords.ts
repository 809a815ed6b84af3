import type { SchemaNode } from './schema.ts'

/** JSON's types, with integers and other numbers distinguished. */
export type ValueKind = 'null' | 'boolean' | 'integer' | 'fraction' | 'string' | 'array' | 'object'
const kinds: readonly ValueKind[] = ['null', 'boolean', 'integer', 'fraction', 'string', 'array', 'object']

export interface Bound {
  value: number
  /** Whether the bound itself is excluded. */
  open: boolean
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))
/** Keywords that demand nothing of a value, those of OpenAPI and of editors included; `x-…` are others. */
const annotations = words(
  'title description default examples $schema $comment deprecated readOnly writeOnly $defs definitions $anchor ' +
    '$vocabulary contentEncoding contentMediaType contentSchema discriminator example externalDocs xml ' +
    'markdownDescription enumDescriptions deprecationMessage',
)
const inPlace = words('$ref allOf anyOf oneOf')
const assertions = words(
  'type nullable enum const properties required additionalProperties items prefixItems additionalItems minItems ' +
    'maxItems minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf',
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

/** The own keywords of one schema object, parsed and validated. Missing ones are undefined or empty. */
export type Keywords = ReturnType<typeof readKeywords>

/** Throws Failure `unsupported_parameter` that names the keyword of the schema. */
export const unsupported = ({ document, path }: SchemaNode, keyword: string, what: string): never =>
  document.unsupported(`${path}.${keyword}`, what)

/**
 * Reads one schema object; boolean schemas have no keywords. Throws Failure `unsupported_parameter` for keywords that
 * cannot be converted to a grammar, and `invalid_value` for invalid values of keywords.
 */
export function readKeywords(schemaNode: SchemaNode) {
  const { schema, path, document } = schemaNode
  const given = typeof schema === 'boolean' ? {} : schema
  const { leftOut } = document
  const where = (keyword: string) => `${path}.${keyword}`
  const has = (keyword: string) => Object.hasOwn(given, keyword) && !leftOut?.has(where(keyword))
  const wrong = (keyword: string, what: string): never => document.invalid(where(keyword), what)
  for (const keyword of Object.keys(given)) {
    if (annotations.has(keyword) || inPlace.has(keyword) || assertions.has(keyword)) continue
    if (keyword.startsWith('x-')) continue
    if (keyword === '$id' && document.root.schema === schema) continue
    if (leftOut) leftOut.add(where(keyword))
    else unsupported(schemaNode, keyword, `no grammar is made of the keyword '${keyword}'`)
  }
  /** Reads the value of a keyword; undefined if the schema does not have it. */
  const read = <T>(keyword: string, isValid: (value: unknown) => value is T, fault: string): T | undefined => {
    if (!has(keyword)) return undefined
    const value = given[keyword]
    return isValid(value) ? value : wrong(keyword, fault)
  }
  const list = (keyword: string) => read(keyword, Array.isArray, 'is no array') as unknown[] | undefined
  const schemas = (keyword: string): SchemaNode[] | undefined => {
    const found = list(keyword)?.map((entry, at) => document.schemaNode(entry, `${where(keyword)}[${at}]`))
    return found?.length === 0 ? wrong(keyword, 'is empty; it needs at least one schema') : found
  }
  const schemaAt = (keyword: string) => (has(keyword) ? document.schemaNode(given[keyword], where(keyword)) : undefined)
  const count = (keyword: string) => read(keyword, isCount, 'is no whole number from 0')
  const bound = (keyword: string, open: boolean): Bound | undefined => {
    const value = read(keyword, isNumber, 'is no number')
    return value === undefined ? undefined : { value, open }
  }
  const step = (): number | undefined => {
    const given = bound('multipleOf', false)
    return given && (given.value > 0 ? given.value : wrong('multipleOf', 'is not above 0'))
  }
  const string = (keyword: string) => read(keyword, isString, 'is no string')
  const types = (): ReadonlySet<ValueKind> | undefined => {
    if (!has('type')) return undefined
    const names = [given.type].flat()
    if (names.length === 0) wrong('type', 'is empty')
    const kindsNamed = (name: unknown) =>
      typeof name === 'string' && Object.hasOwn(kindsOf, name)
        ? kindsOf[name]!
        : wrong('type', `holds ${JSON.stringify(name)}; types are ${Object.keys(kindsOf).join(', ')}`)
    const found = names.flatMap(kindsNamed)
    // OpenAPI 3.0 writes a type with null so.
    return new Set(given.nullable === true ? [...found, 'null'] : found)
  }
  const properties = (): ReadonlyMap<string, SchemaNode> | undefined => {
    const value = read('properties', isObject, 'is no object')
    const nodeOf = ([name, entry]: [string, unknown]) =>
      [name, document.schemaNode(entry, `${where('properties')}.${name}`)] as const
    return value && new Map(Object.entries(value).map(nodeOf))
  }
  const required = (list('required') ?? []).map(name =>
    isString(name) ? name : wrong('required', 'holds something that is no string'),
  )
  // Before 2020-12, `items` was also the list that is `prefixItems` now, and `additionalItems` what is `items` now.
  const tuple = has('items') && Array.isArray(given.items)
  // Names that only a dropped keyword allows must not be refused.
  const further = leftOut?.has(where('patternProperties')) ? document.schemaNode(true, path) : undefined
  const reference = string('$ref')
  return {
    kinds: types(),
    values: has('const')
      ? [given.const].filter(value => list('enum')?.some(one => equal(one, value)) ?? true)
      : list('enum'),
    low: higher(bound('minimum', false), bound('exclusiveMinimum', true)),
    high: lower(bound('maximum', false), bound('exclusiveMaximum', true)),
    step: step(),
    minLength: count('minLength'),
    maxLength: count('maxLength'),
    pattern: string('pattern'),
    format: string('format'),
    prefix: schemas(tuple ? 'items' : 'prefixItems') ?? [],
    items: schemaAt(tuple ? 'additionalItems' : 'items'),
    minItems: count('minItems'),
    maxItems: count('maxItems'),
    properties: properties(),
    required,
    additional: further ?? schemaAt('additionalProperties'),
    reference: reference === undefined ? undefined : document.target(reference, where('$ref')),
    allOf: schemas('allOf') ?? [],
    anyOf: schemas('anyOf'),
    oneOf: schemas('oneOf'),
    /** Whether the schema has keywords besides `$ref`, `allOf`, `anyOf` and `oneOf`. */
    asserts: Object.keys(given).some(keyword => assertions.has(keyword)),
  }
}

const isString = (value: unknown) => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

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
export type SchemaShape = ReturnType<typeof shapeOf>

export function shapeOf(schemaNodes: readonly SchemaNode[], read: (schemaNode: SchemaNode) => Keywords) {
  const all = schemaNodes.map(schemaNode => ({ schemaNode, ...read(schemaNode) }))
  const given = all.flatMap(({ kinds: some }) => some ?? [])
  const valueLists = all.flatMap(({ values }) => (values ? [values] : []))
  const minimums = all.flatMap(({ minItems }) => minItems ?? [])
  const additional = all.flatMap(one => one.additional ?? [])
  return {
    /** Returns the schema that has this keyword, to name it in an error message. */
    with: (keyword: string): SchemaNode =>
      schemaNodes.find(({ schema }) => typeof schema === 'object' && Object.hasOwn(schema, keyword)) ?? schemaNodes[0]!,
    kinds: new Set(kinds.filter(kind => given.every(some => some.has(kind)))) as ReadonlySet<ValueKind>,
    /** Whether `kinds` comes from a `type`, `enum` or `const`. */
    kindsGiven: given.length > 0 || valueLists.length > 0,
    values: valueLists.length
      ? valueLists.reduce((common, some) => common.filter(value => some.some(one => equal(one, value))))
      : undefined,
    low: all.map(({ low }) => low).reduce(higher, undefined),
    high: all.map(({ high }) => high).reduce(lower, undefined),
    /** What numbers must be multiples of. */
    steps: [...new Set(all.flatMap(({ step }) => step ?? []))],
    minLength: Math.max(0, ...all.map(({ minLength }) => minLength ?? 0)),
    maxLength: Math.min(...all.map(({ maxLength }) => maxLength ?? Number.POSITIVE_INFINITY)),
    patterns: all.flatMap(({ pattern: source, schemaNode }) => (source === undefined ? [] : { source, schemaNode })),
    formats: all.flatMap(({ format: name, schemaNode }) => (name === undefined ? [] : { name, schemaNode })),
    /** How many items have a schema for their position. */
    prefixLength: Math.max(0, ...all.map(({ prefix }) => prefix.length)),
    item: (index: number): readonly SchemaNode[] => all.flatMap(({ prefix, items }) => prefix[index] ?? items ?? []),
    /** Whether a schema states anything about items after the prefix. */
    itemsGiven: all.some(({ items }) => items !== undefined),
    /** Undefined if no schema states it. */
    minItems: minimums.length ? Math.max(...minimums) : undefined,
    maxItems: Math.min(...all.map(({ maxItems }) => maxItems ?? Number.POSITIVE_INFINITY)),
    /** Declared ones in their order. */
    properties: new Set(all.flatMap(({ properties }) => [...(properties?.keys() ?? [])])),
    propertiesGiven: all.some(({ properties }) => properties !== undefined),
    required: new Set(all.flatMap(({ required }) => required)),
    property: (name: string): readonly SchemaNode[] =>
      all.flatMap(one => one.properties?.get(name) ?? one.additional ?? []),
    /** Schemas for undeclared properties; undefined if no schema states any. */
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
  if (shape.low || shape.high || shape.steps.length) meant.push('integer', 'fraction')
  if (shape.formats.length) meant.push(...shape.formats.flatMap(({ name }) => kindsOfFormat(name)))
  return meant.length ? new Set(meant) : shape.kinds
}

/** OpenAPI's number formats apply to numbers, all others to strings. */
export function kindsOfFormat(name: string): readonly ValueKind[] {
  if (name === 'int32' || name === 'int64') return ['integer']
  return name === 'float' || name === 'double' ? ['integer', 'fraction'] : ['string']
}
