import { sumDivisors, type UsageDimension, type UsageGroup, type UsageSums, usageDimensions } from './usage-records.ts'

/** One result of a bucket: the values by which it is grouped, and the sums in the order of the columns. */
export interface UsageResult {
  start: number
  /** The start of the day if it is grouped by day. */
  day: number | null
  dimensions: Partial<Record<UsageDimension, string | null>>
  sums: readonly number[]
}

const sumNames = Object.keys(sumDivisors)

/** Converts the sums of columns to the units of the API: seconds, watt-hours, currency units. */
export function usageSums(sums: readonly number[]): UsageSums {
  const [requests, jobs, failed, cost, queueMs, runMs, ...used] = sums
  const columns = [requests, jobs, failed, ...used, cost, queueMs, runMs]
  return madeOf((name, at) => columns[at]! / sumDivisors[name])
}

const madeOf = (sumOf: (name: keyof UsageSums, at: number) => number): UsageSums =>
  Object.fromEntries(sumNames.map((name, at) => [name, sumOf(name as keyof UsageSums, at)])) as UsageSums

const dayText = (day: number): string => new Date(day * 1000).toISOString().slice(0, 10)

/** A result as JSON text. */
export function usageResultText({ day, dimensions, sums }: UsageResult): string {
  const groups = Object.fromEntries(usageDimensions.map(name => [name, dimensions[name] ?? null]))
  const at = day === null ? null : dayText(day)
  return JSON.stringify({ object: 'usage.result', ...groups, day: at, ...usageSums(sums) })
}

/**
 * Quotes a cell by RFC 4180. A cell that a spreadsheet would run as a formula gets an apostrophe before it: names of
 * models come from files of others.
 */
function csvCell(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const time = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')

/** The names of the columns of a CSV file. */
export const csvHeader = (groupBy: readonly string[]): string =>
  `${['start_time', 'end_time', ...groupBy, ...sumNames].join(',')}\r\n`

/** A row of a CSV file: the times of the bucket, the values of its groups and the sums. */
export const csvLine = (start: number, end: number, groups: readonly string[], sums: UsageSums): string =>
  `${[time(start), time(end), ...groups, ...Object.values(sums)].map(csvCell).join(',')}\r\n`

/** A result as a row of a CSV file. */
export function csvRow(
  { start, day, dimensions, sums }: UsageResult,
  end: number,
  groupBy: readonly UsageGroup[],
): string {
  const groups = groupBy.map(name => (name === 'day' ? (day === null ? '' : dayText(day)) : (dimensions[name] ?? '')))
  return csvLine(start, end, groups, usageSums(sums))
}

/** The sums of a result of the API, without its other members. */
export const sumsOf = (result: UsageSums): UsageSums => madeOf(name => result[name])
