import type { RunResult } from 'better-sqlite3'
import type { WorkflowDefinition } from '../workflows.ts'
import type { Connection } from './database.ts'

/**
 * Fields of records are in camel case, and the columns of their tables have the same names in snake case. A list of
 * fields (`id, organizationId, createdAt`) stands once for each table: rows are read as records, and written from them.
 */
const namesIn = (fields: string): string[] => fields.split(/,\s+/)

export const columnOf = (field: string): string => field.replaceAll(/[A-Z]/g, capital => `_${capital.toLowerCase()}`)

/** For SELECT and RETURNING: `id, created_at AS createdAt`. `table`: the name that stands before each column. */
export const selected = (fields: string, table?: string): string =>
  namesIn(fields)
    .map(field => {
      const column = columnOf(field)
      return (table ? `${table}.${column}` : column) + (column === field ? '' : ` AS ${field}`)
    })
    .join(', ')

/** Returns a function that inserts a row with these fields of an object. `conflict`: what to do if there is one. */
export function openInsert(connection: Connection, table: string, fields: string, conflict = '') {
  const names = namesIn(fields)
  const places = names.map(() => '?').join(', ')
  const insert = connection.statement`INSERT INTO ${table} (${names.map(columnOf).join(', ')})
    VALUES (${places}) ${conflict}`
  return (row: object): RunResult => insert.run(...valuesOf(names, row))
}

/** Returns a function that writes these fields of an object to the row that has its `key`. */
export function openUpdate(connection: Connection, table: string, fields: string, key = 'organizationId, id') {
  const equal = (names: readonly string[]) => names.map(name => `${columnOf(name)} = ?`)
  const [names, keys] = [namesIn(fields), namesIn(key)]
  const update = connection.statement`UPDATE ${table} SET ${equal(names).join(', ')} WHERE ${equal(keys).join(' AND ')}`
  return (row: object): RunResult => update.run(...valuesOf([...names, ...keys], row))
}

const valuesOf = (names: readonly string[], row: object): unknown[] =>
  names.map(name => valueOf((row as Record<string, unknown>)[name]))

/** A value as SQLite stores it: null for an absent one, 0 and 1 for booleans, JSON text for lists and objects. */
function valueOf(value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value)
  if (typeof value !== 'object' || value === null) return value ?? null
  return value instanceof Uint8Array ? Buffer.from(value) : JSON.stringify(value)
}

/** The value of JSON text, whose type is the one that was written; null of null. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function fromJson<Value>(text: string): Value
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function fromJson<Value>(text: string | null): Value | null
export function fromJson(text: string | null): unknown {
  return text === null ? null : JSON.parse(text)
}

/** A row of which these JSON columns are text. */
export type RowOf<Fields, Json extends keyof Fields> = Omit<Fields, Json> & {
  [Name in Json]: null extends Fields[Name] ? string | null : string
}

/** The row with the values of these JSON columns. */
export const withJson = <Row extends object, Json extends keyof Row>(row: Row, ...names: Json[]) =>
  ({ ...row, ...Object.fromEntries(names.map(name => [name, fromJson(row[name] as string | null)])) }) as Omit<
    Row,
    Json
  > & {
    [Name in Json]: never
  }

/** The record of a row that may not exist. */
export const recordIf = <Row, Found>(row: Row | undefined, recordOf: (row: Row) => Found): Found | undefined =>
  row === undefined ? undefined : recordOf(row)

/** The first `limit` of rows of which one more was read; `next`: the last of them, if there is a next page. */
export function pageOf<Row>(rows: readonly Row[], limit: number): { page: Row[]; next: Row | undefined } {
  const page = rows.slice(0, limit)
  return { page, next: rows.length > limit ? page.at(-1) : undefined }
}

/** A definition from its columns; with an empty graph if that was not read, and without tags if it was stored before them. */
export const definitionOf = ({ definition, dag }: { definition: string; dag: string | null }): WorkflowDefinition => ({
  tags: [],
  ...fromJson<Omit<WorkflowDefinition, 'tags' | 'dag'>>(definition),
  dag: fromJson<WorkflowDefinition['dag']>(dag) ?? { nodes: {}, edges: [] },
})

/** Whether the definition in a row has a tag. Most that have not are found without parsing them. */
export const hasTag = (definition: string, tag: string): boolean =>
  definition.includes(JSON.stringify(tag)) &&
  (fromJson<Partial<WorkflowDefinition>>(definition).tags ?? []).includes(tag)

/** The row with the fields of a change that are given. */
export const withChanges = <Row extends object>(row: Row, change: object): Row => ({
  ...row,
  ...Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)),
})
