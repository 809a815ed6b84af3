import { isDeepStrictEqual } from 'node:util'
import { Failure } from '../failure.ts'
import { isObject } from '../json.ts'
import type { Pattern } from '../pattern.ts'
import { placeOf } from './issues.ts'
import { jsonType } from './schema-walk.ts'

type Schema = Record<string, unknown> | boolean
type Place = readonly (string | number)[]

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))
/** Keywords that demand nothing of a value; `x-…` are others. */
const annotations = words(
  'title description default examples example $schema $id $comment $anchor $defs definitions deprecated readOnly writeOnly format contentEncoding contentMediaType externalDocs discriminator',
)
const assertions = words(
  'type nullable enum const properties required additionalProperties minProperties maxProperties items prefixItems minItems maxItems uniqueItems minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf $ref allOf anyOf oneOf not',
)

/** Schemas within one schema, and their nesting. */
const maxSchemas = 10_000
const maxDepth = 64

/** What is wrong with a JSON Schema, as a sentence; undefined if values can be checked by it. */
export function schemaFault(root: unknown): string | undefined {
  let count = 0
  function faultIn(schema: unknown, at: Place): string | undefined {
    if (++count > maxSchemas || at.length > 2 * maxDepth) return 'The schema is too large.'
    if (typeof schema === 'boolean') return undefined
    if (!isObject(schema)) return `${placeOf(at)} must be a JSON Schema: an object, true or false.`
    for (const keyword of Object.keys(schema))
      if (!annotations.has(keyword) && !assertions.has(keyword) && !keyword.startsWith('x-'))
        return `${placeOf(at)} has the keyword '${keyword}', which is not supported. Supported are ${[...assertions].join(', ')}.`
    if (schema.$ref !== undefined && target(root, schema.$ref) === undefined)
      return `${placeOf(at)} refers to ${JSON.stringify(schema.$ref)}, which is not in the schema. References begin with '#/$defs/'.`
    for (const { schema: inner, keyword } of within(schema)) {
      const fault = faultIn(inner, [...at, ...keyword])
      if (fault !== undefined) return fault
    }
    return undefined
  }
  return faultIn(root, ['schema'])
}

/** The schemas within a schema, with their places in it. */
function* within(schema: Record<string, unknown>): Generator<{ schema: unknown; keyword: string[] }> {
  for (const keyword of ['properties', '$defs', 'definitions'])
    if (isObject(schema[keyword]))
      for (const [name, inner] of Object.entries(schema[keyword])) yield { schema: inner, keyword: [keyword, name] }
  for (const keyword of ['allOf', 'anyOf', 'oneOf', 'prefixItems'])
    if (Array.isArray(schema[keyword])) for (const inner of schema[keyword]) yield { schema: inner, keyword: [keyword] }
  for (const keyword of ['items', 'additionalProperties', 'not'])
    if (schema[keyword] !== undefined) yield { schema: schema[keyword], keyword: [keyword] }
}

function target(root: unknown, reference: unknown): Schema | undefined {
  if (reference === '#') return root as Schema
  const found = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(reference))
  const all = found && isObject(root) ? root[found[1]!] : undefined
  const name = found?.[2]?.replaceAll('~1', '/').replaceAll('~0', '~')
  return isObject(all) && name !== undefined && Object.hasOwn(all, name) ? (all[name] as Schema) : undefined
}

/** Checks of one value, all together: nested alternatives multiply. */
const maxChecks = 500_000
const maxFaults = 5

/**
 * Returns what is wrong with a value, each as the rest of a sentence about `value`; empty if it fits the schema, which has
 * no `schemaFault`. At most five. Throws Failure `invalid_value` for an invalid pattern, and for a schema with which the
 * check has no end.
 */
export function schemaFaults(root: unknown, value: unknown, compile: (pattern: string) => Pattern): string[] {
  let checks = 0

  function faults(schema: Schema, given: unknown, at: Place, depth = 0): string[] {
    if (++checks > maxChecks || depth > 600)
      throw new Failure(
        'invalid_value',
        'The check by this schema takes too long: its alternatives refer to each other.',
      )
    if (schema === true) return []
    if (schema === false) return [`${placeOf(at)} must not be there`]
    const found = own(schema, given, at)
    const check = (inner: unknown, part: unknown, step?: string | number) => {
      if (found.length < maxFaults)
        found.push(...faults(inner as Schema, part, step === undefined ? at : [...at, step], depth + 1))
    }
    const fits = (inner: unknown) => faults(inner as Schema, given, at, depth + 1).length === 0
    if (schema.$ref !== undefined) check(target(root, schema.$ref), given)
    for (const inner of listAt(schema, 'allOf')) check(inner, given)
    if (schema.not !== undefined && fits(schema.not)) found.push(`${placeOf(at)} must not fit the schema of 'not'`)
    const any = listAt(schema, 'anyOf')
    if (any.length > 0 && !any.some(fits)) found.push(...nearest(any, given, at, depth))
    const one = listAt(schema, 'oneOf')
    const fitting = one.filter(fits).length
    if (one.length > 0 && fitting === 0) found.push(...nearest(one, given, at, depth))
    else if (fitting > 1) found.push(`${placeOf(at)} must fit only one schema of 'oneOf', and fits ${fitting}`)
    if (Array.isArray(given)) {
      const first = listAt(schema, 'prefixItems')
      for (const [index, item] of given.entries()) {
        if (found.length >= maxFaults) break
        if (index < first.length) check(first[index], item, index)
        else if (schema.items !== undefined) check(schema.items, item, index)
      }
    } else if (isObject(given)) {
      const properties = isObject(schema.properties) ? schema.properties : {}
      for (const [name, part] of Object.entries(given)) {
        if (found.length >= maxFaults) break
        if (Object.hasOwn(properties, name)) check(properties[name], part, name)
        else if (schema.additionalProperties !== undefined) check(schema.additionalProperties, part, name)
      }
    }
    return found.slice(0, maxFaults)
  }

  /** The faults of the alternative that has the fewest. */
  function nearest(alternatives: readonly unknown[], given: unknown, at: Place, depth: number): string[] {
    const all = alternatives.map(inner => faults(inner as Schema, given, at, depth + 1))
    return all.reduce((best, one) => (one.length < best.length ? one : best))
  }

  /** The faults by the keywords that concern the value alone. */
  function own(schema: Record<string, unknown>, given: unknown, at: Place): string[] {
    const name = placeOf(at)
    const types = [schema.type ?? []].flat() as string[]
    if (types.length > 0 && !types.some(type => isOf(type, given)) && !(schema.nullable === true && given === null))
      return [`${name} must be ${types.join(' or ')}, and is ${shown(given)}`]
    const found: string[] = []
    const limit = (keyword: string, isWrong: (bound: number) => boolean, text: (bound: number) => string) => {
      const bound = schema[keyword]
      if (typeof bound === 'number' && isWrong(bound)) found.push(`${name} must ${text(bound)}`)
    }
    if (Array.isArray(schema.enum) && !schema.enum.some(one => isDeepStrictEqual(one, given)))
      found.push(`${name} must be one of ${schema.enum.map(shown).join(', ')}, and is ${shown(given)}`)
    if (schema.const !== undefined && !isDeepStrictEqual(schema.const, given))
      found.push(`${name} must be ${shown(schema.const)}, and is ${shown(given)}`)
    if (typeof given === 'number') {
      limit(
        'minimum',
        bound => given < bound,
        bound => `be at least ${bound}, and is ${given}`,
      )
      limit(
        'maximum',
        bound => given > bound,
        bound => `be at most ${bound}, and is ${given}`,
      )
      limit(
        'exclusiveMinimum',
        bound => given <= bound,
        bound => `be more than ${bound}, and is ${given}`,
      )
      limit(
        'exclusiveMaximum',
        bound => given >= bound,
        bound => `be less than ${bound}, and is ${given}`,
      )
      limit(
        'multipleOf',
        bound => !isMultiple(given, bound),
        bound => `be a multiple of ${bound}, and is ${given}`,
      )
    }
    if (typeof given === 'string') {
      const { length } = Array.from(given)
      limit(
        'minLength',
        bound => length < bound,
        bound => `have at least ${bound} characters, and has ${length}`,
      )
      limit(
        'maxLength',
        bound => length > bound,
        bound => `have at most ${bound} characters, and has ${length}`,
      )
      if (typeof schema.pattern === 'string' && !compile(schema.pattern).test(given))
        found.push(`${name} must match ${schema.pattern}, and is ${shown(given)}`)
    }
    if (Array.isArray(given)) {
      limit(
        'minItems',
        bound => given.length < bound,
        bound => `have at least ${bound} items, and has ${given.length}`,
      )
      limit(
        'maxItems',
        bound => given.length > bound,
        bound => `have at most ${bound} items, and has ${given.length}`,
      )
      if (schema.uniqueItems === true && new Set(given.map(one => JSON.stringify(one))).size < given.length)
        found.push(`${name} must not have an item twice`)
    }
    if (isObject(given)) {
      const size = Object.keys(given).length
      limit(
        'minProperties',
        bound => size < bound,
        bound => `have at least ${bound} members, and has ${size}`,
      )
      limit(
        'maxProperties',
        bound => size > bound,
        bound => `have at most ${bound} members, and has ${size}`,
      )
      for (const member of listAt(schema, 'required'))
        if (!Object.hasOwn(given, String(member))) found.push(`${placeOf([...at, String(member)])} is missing`)
    }
    return found
  }

  return faults(root as Schema, value, ['value'])
}

const listAt = (schema: Record<string, unknown>, keyword: string): unknown[] =>
  Array.isArray(schema[keyword]) ? (schema[keyword] as unknown[]) : []

const isOf = (type: string, value: unknown): boolean =>
  type === 'integer'
    ? Number.isInteger(value)
    : type === 'number'
      ? typeof value === 'number'
      : jsonType(value) === type

/** 0.3 is a multiple of 0.1, although the quotient of the floating-point numbers is not whole. */
const isMultiple = (value: number, of: number): boolean =>
  of > 0 && Math.abs(value / of - Math.round(value / of)) <= 1e-9 * Math.max(1, Math.abs(value / of))

function shown(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (isObject(value)) return 'an object'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
