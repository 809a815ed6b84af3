import {
  type BucketWidth,
  bucketEnd,
  bucketStart,
  type UsageCursor,
  type UsageDimension,
  type UsagePage,
  type UsageQuery,
} from '../usage-records.ts'
import { csvRow, type UsageResult, usageResultText, usageSums } from '../usage-text.ts'
import type { Connection } from './database.ts'
import { detailDimensions, ledgerSums, sumColumns, type UsageDetail } from './usage-totals.ts'

const daySeconds = 86_400

/** Rows to be summed: a range of one table in one detail, or of the ledger itself. */
interface Source {
  table: 'usage_hours' | 'usage_days' | 'usage_months' | 'ledger'
  detail: UsageDetail
  from: number
  to: number
}

/** A SELECT of these rows, and its values. */
interface Rows {
  sql: string
  values: (string | number)[]
}

/** The rows of a source that match, with their dimensions, `start` and sums. */
function rowsOf({ table, detail, from, to }: Source, { organizationId, only }: UsageQuery, columns: string): Rows {
  const filters = Object.entries(only)
  const matching = filters.map(([name]) => ` AND ${name} IN (SELECT value FROM json_each(?))`).join('')
  const wanted = filters.map(([, values]) => JSON.stringify(values))
  if (table !== 'ledger')
    return {
      sql: `SELECT ${columns} FROM usage_series AS s
        CROSS JOIN ${table} AS r ON r.series = s.id JOIN usage_keys AS k ON k.id = r.key
        WHERE s.organization_id = ? AND s.detail = ? AND r.start >= ? AND r.start < ?${matching}`,
      values: [organizationId, detail, from, to, ...wanted],
    }
  const hour = from - (from % 3600)
  return {
    sql: `SELECT ${columns} FROM (SELECT finished_at / 60000 * 60 AS start, model_id, task, token_id,
          coalesce(user_id, '') AS user_id, coalesce(workflow_id, '') AS workflow_id, status,
          ${ledgerSums.map((value, at) => `${value} AS ${sumColumns[at]}`).join(', ')}
        FROM ledger WHERE sequence >= (SELECT min(first_sequence) FROM ledger_hours WHERE start >= ? AND start < ?)
          AND sequence <= (SELECT max(last_sequence) FROM ledger_hours WHERE start >= ? AND start < ?)
          AND organization_id = ? AND finished_at >= ? AND finished_at < ?) WHERE true${matching}`,
    values: [hour, to, hour, to, organizationId, from * 1000, to * 1000, ...wanted],
  }
}

/** The coarsest detail that has all of these dimensions. */
const detailOf = (needed: readonly string[]): UsageDetail =>
  (['model', 'token'] as const).find(detail =>
    needed.every(name => (detailDimensions[detail] as readonly string[]).includes(name)),
  ) ?? 'full'

const dimensionsOf = ({ groupBy }: UsageQuery): UsageDimension[] => groupBy.filter(name => name !== 'day')

/** The first boundary of buckets from `at` on. */
function roundUp(at: number, width: BucketWidth): number {
  const start = bucketStart(at, width)
  return start === at ? at : bucketEnd(start, width)
}

/** Whole months, the days around them and the hours around those, from the coarsest tables. */
function totalSources({ from, to, width, only }: UsageQuery): Source[] {
  if (width === '1m') return [{ table: 'ledger', detail: 'full', from, to }]
  const detail = detailOf(Object.keys(only))
  const firstDay = Math.min(to, roundUp(from, '1d'))
  const lastDay = Math.max(firstDay, bucketStart(to, '1d'))
  // Only the full detail has months: a year of the others is few rows.
  const firstMonth = detail === 'full' ? Math.min(lastDay, roundUp(firstDay, 'month')) : lastDay
  const lastMonth = Math.max(firstMonth, bucketStart(lastDay, 'month'))
  const all: Source[] = [
    { table: 'usage_hours', detail: 'full', from, to: firstDay },
    { table: 'usage_days', detail, from: firstDay, to: firstMonth },
    { table: 'usage_months', detail, from: firstMonth, to: lastMonth },
    { table: 'usage_days', detail, from: lastMonth, to: lastDay },
    { table: 'usage_hours', detail: 'full', from: lastDay, to },
  ]
  return all.filter(source => source.to > source.from)
}

/** What a range of buckets is summed from. */
function bucketSource(query: UsageQuery, from: number, to: number): Source {
  if (query.width === '1m') return { table: 'ledger', detail: 'full', from, to }
  if (query.width === '1h') return { table: 'usage_hours', detail: 'full', from, to }
  const detail = detailOf([...dimensionsOf(query), ...Object.keys(query.only)])
  const months = query.width === 'month' && detail === 'full' && !query.groupBy.includes('day')
  return { table: months ? 'usage_months' : 'usage_days', detail, from, to }
}

const summed = sumColumns.map(name => `total(${name})`).join(', ')

type Statement = ReturnType<typeof statementOf>
const statementOf = (connection: Connection, sql: string) => connection.query<unknown[]>`${sql}`.raw()

/** Reads of the summed usage: up to tenths of a second, so they run in a thread of their own. */
export function usageReads(connection: Connection) {
  const prepared = new Map<string, Statement>()

  function select({ sql, values }: Rows): unknown[][] {
    let statement = prepared.get(sql)
    if (!statement) {
      if (prepared.size >= 100) prepared.clear()
      prepared.set(sql, (statement = statementOf(connection, sql)))
    }
    return statement.all(...values)
  }

  function totals(query: UsageQuery): number[] {
    const sums = sumColumns.map(() => 0)
    for (const source of totalSources(query))
      for (const row of select(rowsOf(source, query, summed)))
        for (const [at, value] of row.entries()) sums[at]! += value as number
    return sums
  }

  /** The results of the buckets between two times, ordered by bucket and group. */
  function results(query: UsageQuery, from: number, to: number, offset: number, limit: number): UsageResult[] {
    const names = dimensionsOf(query)
    const perDay = query.groupBy.includes('day')
    const bucket = query.width === 'month' ? String(from) : 'start'
    const day = perDay ? `start / ${daySeconds} * ${daySeconds}` : 'NULL'
    const { sql, values } = rowsOf(bucketSource(query, from, to), query, [bucket, day, ...names, summed].join(', '))
    const keys = names.map((_, at) => at + 3)
    const grouped = [...(query.width === 'month' ? [] : [1]), ...(perDay ? [2] : []), ...keys]
    const rows = select({
      sql: `${sql}${grouped.length > 0 ? ` GROUP BY ${grouped.join(', ')} ORDER BY ${grouped.join(', ')}` : ' HAVING count(*) > 0'} LIMIT ? OFFSET ?`,
      values: [...values, limit, offset],
    })
    return rows.map(([start, at, ...rest]) => ({
      start: start as number,
      day: at as number | null,
      dimensions: Object.fromEntries(names.map((name, which) => [name, (rest[which] as string) || null])),
      sums: rest.slice(names.length) as number[],
    }))
  }

  /** The buckets from `start` on, until the page has as many buckets or results as it may. */
  function page(query: UsageQuery): { buckets: { start: number; results: UsageResult[] }[]; next: UsageCursor | null } {
    const buckets: { start: number; results: UsageResult[] }[] = []
    const begin = query.page ?? { start: query.from, offset: 0 }
    let room = query.results
    let { offset } = begin
    const starts: number[] = []
    for (let at = begin.start; at < query.to && starts.length < query.buckets; at = bucketEnd(at, query.width))
      starts.push(at)
    const after = starts.length > 0 ? bucketEnd(starts.at(-1)!, query.width) : query.to
    // One range at once, but for months, which are no unit of the tables.
    const ranges: [number, number][] =
      query.width === 'month'
        ? starts.map(start => [start, bucketEnd(start, query.width)])
        : starts.length > 0
          ? [[begin.start, after]]
          : []
    for (const [from, to] of ranges) {
      const found = results(query, from, to, offset, room + 1)
      const kept = found.slice(0, room)
      const cut = found[room]?.start
      const last = cut ?? to - 1
      for (let start = from; start <= last; start = bucketEnd(start, query.width)) buckets.push({ start, results: [] })
      const byStart = new Map(buckets.map(bucket => [bucket.start, bucket.results]))
      for (const result of kept) byStart.get(result.start)!.push(result)
      if (cut !== undefined) {
        const of = byStart.get(cut)!
        if (of.length === 0) buckets.pop()
        return { buckets, next: { start: cut, offset: of.length + (cut === begin.start ? begin.offset : 0) } }
      }
      room -= kept.length
      offset = 0
    }
    return { buckets, next: after < query.to ? { start: after, offset: 0 } : null }
  }

  return {
    read(query: UsageQuery): UsagePage {
      const { buckets, next } = page(query)
      const text =
        query.format === 'csv'
          ? buckets
              .flatMap(({ start, results: of }) =>
                of.map(result => csvRow(result, bucketEnd(start, query.width), query.groupBy)),
              )
              .join('')
          : `[${buckets
              .map(({ start, results: of }) => {
                const rows = of.map(usageResultText).join(',')
                return `{"object":"bucket","start_time":${start},"end_time":${bucketEnd(start, query.width)},"results":[${rows}]}`
              })
              .join(',')}]`
      return { totals: usageSums(totals(query)), text, next }
    },
  }
}
