import { moneyText } from '../../core/money-text.ts'
import type { UsageSums } from '../../core/store/store.ts'
import { sumsOf } from '../../core/store/usage-text.ts'
import { lengthText } from '../terminal/quantities-text.ts'
import { lineWidth, type Paint, printable } from '../terminal/styled-line.ts'
import { type Grouping, plus, type Usage } from './read-usage.ts'

/** A group of the table and its sums over the whole time. */
interface Row {
  name: string
  sums: UsageSums
}

/** The largest bar, and the smallest for which there is a column. */
const bars = { most: 40, least: 8 }

/** Adds up the results of each group. The largest come first, days in their order. */
function usageRows({ buckets }: Pick<Usage, 'buckets'>, by: Grouping): Row[] {
  const rows = new Map<string, UsageSums>()
  for (const { results } of buckets)
    for (const result of results) {
      const name = result[by] ?? ''
      const sums = sumsOf(result)
      const before = rows.get(name)
      rows.set(name, before ? plus(before, sums) : sums)
    }
  const all = [...rows].map(([name, sums]) => ({ name, sums }))
  if (by === 'day') return all.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  const of = measureOf(all)
  return all.toSorted((one, other) => of.value(other.sums) - of.value(one.sums) || (one.name < other.name ? -1 : 1))
}

/** What the bars show: the cost, else GPU time, else tokens, else the number of requests and jobs. */
function measureOf(rows: readonly Row[]): { name: string; value: (sums: UsageSums) => number } {
  const measures = [
    { name: 'cost', value: (sums: UsageSums) => sums.cost },
    { name: 'GPU time', value: (sums: UsageSums) => sums.gpu_seconds },
    { name: 'tokens', value: (sums: UsageSums) => sums.input_tokens + sums.output_tokens },
  ]
  return (
    measures.find(({ value }) => rows.some(({ sums }) => value(sums) > 0)) ?? {
      name: 'requests',
      value: ({ requests, jobs }) => requests + jobs,
    }
  )
}

const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const

/** Draws a part of a whole as a bar of at most `cells` columns, exact to an eighth; visible for anything above 0. */
export function bar(part: number, whole: number, cells: number): string {
  if (part <= 0 || whole <= 0) return ''
  const parts = Math.max(1, Math.round((part / whole) * cells * 8))
  return '█'.repeat(Math.floor(parts / 8)) + eighths[parts % 8]!
}

const count = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 0 })

interface Column {
  head: string
  sum: keyof UsageSums
  text: (value: number) => string
}

/** A column is shown only if a row has a value for it; the first one always. */
const columnsOf = (currency: string): Column[] => [
  { head: 'requests', sum: 'requests', text: count },
  { head: 'jobs', sum: 'jobs', text: count },
  { head: 'failed', sum: 'failed', text: count },
  { head: 'input tokens', sum: 'input_tokens', text: count },
  { head: 'output tokens', sum: 'output_tokens', text: count },
  { head: 'images', sum: 'images', text: count },
  { head: 'video', sum: 'video_seconds', text: lengthText },
  { head: 'audio', sum: 'audio_seconds', text: lengthText },
  { head: 'characters', sum: 'characters', text: count },
  { head: 'documents', sum: 'documents', text: count },
  { head: 'GPU time', sum: 'gpu_seconds', text: lengthText },
  { head: 'energy', sum: 'energy_wh', text: value => `${value.toFixed(1)} Wh` },
  { head: `cost ${currency}`, sum: 'cost', text: moneyText },
]

const unnamed: Partial<Record<Grouping, string>> = { user_id: '(nobody)', workflow_id: '(no workflow)' }

/**
 * The table of usage: a row for each group, a total, and a bar where the terminal has room for one. Measures that
 * nobody used have no column. With `names` each row has its id beside its name. `width` is that of the terminal; 0 is a
 * pipe, which gets no bars.
 */
export function usageTable(
  usage: Usage,
  by: Grouping,
  { width, paint, names }: { width: number; paint: Paint; names?: ReadonlyMap<string, string> | undefined },
): { head: string[]; rows: string[][] } {
  const rows = usageRows(usage, by)
  const columns = columnsOf(usage.currency).filter(({ sum }, at) => at === 0 || usage.totals[sum] > 0)
  const nameHead = by.replace(/_id$/, '')
  const labels = names ? [nameHead, 'id'] : [nameHead]
  const head = [...labels, ...columns.map(column => column.head)]
  const labelsOf = (id: string): string[] => {
    if (id === '') return [unnamed[by] ?? '(none)', '']
    return names ? [names.get(id) ?? '(deleted)', id] : [printable(id)]
  }
  const lines = [
    ...rows.map(({ name, sums }) => ({ labels: labelsOf(name), sums })),
    { labels: ['total', ''], sums: usage.totals },
  ].map(line => [...line.labels.slice(0, labels.length), ...columns.map(({ sum, text }) => text(line.sums[sum]))])
  const widths = head.map((title, at) => Math.max(lineWidth(title), ...lines.map(line => lineWidth(line[at]!))))
  // Numbers are read from their right end.
  const aligned = (line: readonly string[]) =>
    line.map((cell, at) => (at < labels.length ? cell : ' '.repeat(widths[at]! - lineWidth(cell)) + cell))
  const measure = measureOf(rows)
  const room = Math.min(bars.most, width - widths.reduce((sum, one) => sum + one + 2, 0))
  if (room < bars.least) return { head: aligned(head), rows: lines.map(aligned) }
  const most = Math.max(...rows.map(({ sums }) => measure.value(sums)))
  return {
    head: [...aligned(head), `by ${measure.name}`.slice(0, room)],
    rows: lines.map((line, at) => [
      ...aligned(line),
      at < rows.length ? paint.good(bar(measure.value(rows[at]!.sums), most, room)) : '',
    ]),
  }
}
