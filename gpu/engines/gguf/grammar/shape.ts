import { type Bound, equal, higher, type Keywords, kinds, lower, type ValueKind } from './keywords.ts'
import type { SchemaNode } from './schema.ts'

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

/** Combines the own keywords of schemas, all of which apply. */
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
