import type { Schema } from '../../api/schema.ts'
import { costText, countText, durationText } from '../../components/format.ts'
import { usageText } from '../../text/usage.ts'

export type Report = Schema<'UsageReport'>
export type Sums = Report['totals']

export type Period = keyof typeof usageText.periods

export type Group = keyof typeof usageText.groups

/** The parameter `group_by` of a group; none for days, which the buckets are, and for organizations. */
export const groupBy = { model: 'model_id', task: 'task', token: 'token_id' } as const

const day = 86_400

/** Returns the first second of a period, in UTC, and the length of its buckets. */
export function reportWindow(period: Period, nowMs: number): { start: number; width: '1h' | '1d' | 'month' } {
  const now = new Date(nowMs)
  const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()) / 1_000
  const month = (back: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1) / 1_000
  if (period === 'day') return { start: Math.floor(nowMs / 3_600_000) * 3_600 - 23 * 3_600, width: '1h' }
  if (period === 'week') return { start: midnight - 6 * day, width: '1d' }
  if (period === 'month') return { start: month(0), width: '1d' }
  if (period === 'days') return { start: midnight - 29 * day, width: '1d' }
  return { start: month(11), width: 'month' }
}

/** Figures that the page shows. */
export type Measure = keyof typeof usageText.columns

const measures = Object.keys(usageText.columns) as Measure[]

/** Figures that are shown even if they are 0. */
const always: readonly Measure[] = ['requests', 'cost']

/** Requests are synchronous requests and jobs together. */
export const amountOf = (sums: Sums, measure: Measure): number =>
  measure === 'requests' ? sums.requests + sums.jobs : sums[measure]

export const measuresIn = (totals: Sums): Measure[] =>
  measures.filter(measure => always.includes(measure) || amountOf(totals, measure) > 0)

/** `1,234`, `3 min 5 s`, `12.3 Wh`, `1.50 USD` */
export function amountText(amount: number, measure: Measure, currency: string): string {
  if (measure === 'cost') return costText(amount, currency)
  if (measure.endsWith('_seconds')) return amount === 0 ? '0 s' : durationText(amount * 1_000)
  if (measure === 'energy_wh')
    return amount >= 1_000 ? `${(amount / 1_000).toFixed(2)} kWh` : `${Number(amount.toPrecision(3))} Wh`
  return countText(amount)
}

export interface Row {
  key: string
  sums: Sums
}

export const plus = (one: Sums, other: Sums): Sums =>
  Object.fromEntries(Object.entries(one).map(([name, value]) => [name, value + other[name as keyof Sums]])) as Sums

/** Adds up the results of each group over all buckets. The one that cost most comes first, else the busiest. */
export function reportRows(buckets: Report['buckets'], by: keyof typeof groupBy): Row[] {
  const rows = new Map<string, Sums>()
  for (const { results } of buckets)
    for (const result of results) {
      const key = result[groupBy[by]] ?? ''
      const before = rows.get(key)
      rows.set(key, before ? plus(before, sumsOf(result)) : sumsOf(result))
    }
  return sorted([...rows].map(([key, sums]) => ({ key, sums })))
}

export const sorted = (rows: readonly Row[]): Row[] =>
  rows.toSorted(
    (one, other) =>
      other.sums.cost - one.sums.cost || amountOf(other.sums, 'requests') - amountOf(one.sums, 'requests'),
  )

/** Buckets as rows, oldest first; the key is the first second. */
export const bucketRows = (buckets: Report['buckets'], zero: Sums): Row[] =>
  [...Map.groupBy(buckets, ({ start_time }) => start_time)].map(([start, parts]) => ({
    key: String(start),
    sums: parts.flatMap(({ results }) => results.map(sumsOf)).reduce(plus, zero),
  }))

/** One figure of each bucket, oldest first, in parts: of each model, or of all together. The key is the first second. */
export const partsOf = (
  rows: readonly Row[],
  buckets: Report['buckets'],
  measure: Measure,
  by: Group,
): { key: string; parts: { model: string | null; amount: number }[] }[] =>
  rows.map(({ key, sums }) => ({
    key,
    parts:
      by === 'model'
        ? reportRows(
            buckets.filter(({ start_time }) => String(start_time) === key),
            'model',
          ).map(row => ({ model: row.key, amount: amountOf(row.sums, measure) }))
        : [{ model: null, amount: amountOf(sums, measure) }],
  }))

/** The figures of a result without its group. */
function sumsOf({ ...result }: Report['buckets'][number]['results'][number]): Sums {
  const figures = Object.entries(result).filter(([, value]) => typeof value === 'number')
  return Object.fromEntries(figures) as unknown as Sums
}

export const zeroOf = (totals: Sums): Sums =>
  Object.fromEntries(Object.keys(totals).map(name => [name, 0])) as unknown as Sums

/** `Nov 24`, `14:00`, `Nov 2026`, in UTC as the buckets are. */
export function bucketText(start: number, width: '1h' | '1d' | 'month'): string {
  const date = new Date(start * 1_000)
  if (width === '1h') return `${date.toISOString().slice(11, 16)} UTC`
  const format = width === '1d' ? { month: 'short', day: 'numeric' } : { month: 'short', year: 'numeric' }
  return date.toLocaleDateString('en', { ...(format as object), timeZone: 'UTC' })
}
