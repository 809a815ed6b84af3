import { invalid } from '../../../core/failure.ts'
import { definedMembers } from '../../../core/members.ts'
import type { ClientExchange } from './exchange.ts'

/** Query parameters by name. */
export type Query = Record<string, string | string[] | Record<string, string>>

const noQuery: Query = Object.freeze(Object.create(null) as Query)

/** Reads the query string. Repeated names and `name[]` become lists, `name[key]` a member of an object. */
export function queryOf(exchange: ClientExchange): Query {
  if (!exchange.req.url?.includes('?')) return noQuery
  const query = Object.create(null) as Query
  for (const [name, value] of exchange.query) {
    const member = /^(\w+)\[([^[\]]+)\]$/.exec(name)
    if (member) {
      const [, field, key] = member as unknown as [string, string, string]
      const before = query[field]
      const object = typeof before === 'object' && !Array.isArray(before) ? before : {}
      // `__proto__` would not become a member; ignored, it would be a filter that matches everything.
      if (key === '__proto__') throw invalid(field, `'${field}' cannot have a member named '${key}'.`)
      object[key] = value
      query[field] = object
      continue
    }
    const key = name.endsWith('[]') ? name.slice(0, -2) : name
    const before = query[key]
    query[key] = before === undefined ? (name === key ? value : [value]) : [before as string | string[], value].flat()
  }
  return query
}

export type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name
export const camelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())

/** Returns the parameters of a query that were sent, under their names in camel case. */
export const filterOf = <Sent extends object>(query: Sent) =>
  definedMembers(
    Object.fromEntries(Object.entries(query).map(([name, value]) => [camelCase(name), value as unknown])) as {
      [Name in keyof Sent & string as Camel<Name>]: Sent[Name]
    },
  )

/**
 * Throws Failure `invalid_value` if a signed URL has a parameter twice. Programs differ in which of the two they use,
 * so a proxy or cache could use another expiry than the signed one.
 */
export function refuseRepeated(query: URLSearchParams): void {
  for (const name of ['exp', 'sig', 'org', 'type', 'kept'])
    if (query.getAll(name).length > 1)
      throw invalid(name, `The URL has the parameter '${name}' twice. Use the URL unchanged.`)
}
