import { storedSentence } from '../client/refusal.ts'
import { drawRows } from '../help/manual.ts'
import { lengthText, tookText as preciseText, timeText } from '../terminal/quantities-text.ts'
import { type Paint, printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { joinFacts, percentOf, reasonText } from './display.ts'
import { jobSnapshot } from './follow.ts'
import { type Job, type JobSummary, tookOf } from './job.ts'

/** Colors a status by its meaning. */
export function jobStatusText(status: string, paint: Paint): string {
  const colours: Record<string, (text: string) => string> = {
    completed: paint.good,
    processing: paint.warning,
    failed: paint.bad,
  }
  return (colours[status] ?? paint.faint)(printable(status))
}

/** Describes the progress or the error of a job in a few words. */
function noteOf(job: JobSummary): string {
  const snapshot = jobSnapshot(job)
  if (job.status === 'pending') {
    const reason = reasonText(snapshot)
    const before = snapshot.queuePosition ?? 0
    return joinFacts([before > 0 ? `${before} ahead of it` : '', reason])
  }
  if (job.status === 'processing') {
    const done = snapshot.progress === null ? [] : [`${percentOf(snapshot.progress)} %`]
    const left = snapshot.etaSeconds ? [`about ${lengthText(snapshot.etaSeconds)} left`] : []
    return [...done, ...left].join(', ')
  }
  return job.error ? storedSentence(job.error.message) : ''
}

/** Returns how long the job ran; a dash if it never started. */
function jobDurationText(job: JobSummary): string {
  const took = tookOf(job)
  if (took === undefined) return '-'
  // Without `run_ms` there are only start and end in whole seconds.
  return job.metrics?.run_ms == null ? lengthText(took) : preciseText(took * 1000)
}

export const tableHead = ['id', 'status', 'task', 'model', 'age', 'took', 'note'] as const

/** Minimum columns of a terminal for whole ids and for tasks with their prefix. */
const wideColumns = 120
const isNarrow = (width: number): boolean => width > 0 && width < wideColumns

/**
 * Returns the id or, on a narrow terminal, its end: a whole id has 30 characters, and every command accepts the end.
 */
export const idText = (id: string, width: number): string => (isNarrow(width) ? id.slice(-8) : id)

/** Returns table rows for a terminal of this width; 0 is a pipe, which gets full values. `now` in epoch seconds. */
export const jobRows = (jobs: readonly JobSummary[], now: number, width: number, paint: Paint): string[][] =>
  jobs.map(job => [
    idText(job.id, width),
    jobStatusText(job.status, paint),
    isNarrow(width) ? job.task.replace(/^(slug|std)\//, '') : job.task,
    printable(job.model_id),
    lengthText(now - job.created_at),
    jobDurationText(job),
    noteOf(job).replaceAll(/\s+/g, ' '),
  ])

/** Returns the facts about a job as rows of name and value. */
export function factsOf(job: Job, paint: Paint): Fact[] {
  const at = (seconds: number | null | undefined) => timeText(seconds == null ? null : seconds * 1000)
  const text = (value: unknown) => (typeof value === 'string' ? printable(value) : JSON.stringify(value))
  return [
    ['id', job.id],
    ['request', job.queue_id ?? undefined],
    ['status', `${jobStatusText(job.status, paint)}${job.error ? '' : noteOf(job) && `  ${noteOf(job)}`}`],
    ['error', job.error ? `${printable(job.error.code)}: ${storedSentence(job.error.message)}` : undefined],
    ['task', job.task],
    ['model', printable(job.model_id)],
    ['priority', job.priority ? String(job.priority) : undefined],
    ['attempts', job.attempts && job.max_attempts ? `${job.attempts} of ${job.max_attempts}` : undefined],
    ['submitted', at(job.created_at)],
    ['started', job.started_at == null ? undefined : at(job.started_at)],
    ['waited', waitedText(job)],
    [
      'first token',
      job.metrics?.time_to_first_token_ms == null ? undefined : preciseText(job.metrics.time_to_first_token_ms),
    ],
    ['ended', job.finished_at == null ? undefined : at(job.finished_at)],
    ['took', tookOf(job) === undefined ? undefined : jobDurationText(job)],
    ['metadata', job.metadata == null ? undefined : text(job.metadata)],
  ]
}

/** What it waited, and what it would have waited if the queue ignored which models are loaded. */
function waitedText({ metrics }: Job): string | undefined {
  if (metrics?.queue_ms == null) return undefined
  const strict = metrics.reference_queue_ms
  return preciseText(metrics.queue_ms) + (strict == null ? '' : ` (in strict order ${preciseText(strict)})`)
}

/** A name and a value; undefined if there is none. */
export type Fact = readonly [name: string, value: string | undefined]

/** Draws the facts that have a value: a line each, the names in one column. */
export function factLines(facts: readonly Fact[], paint: Paint): string[] {
  const shown = facts.filter(([, value]) => value !== undefined)
  const width = Math.max(9, ...shown.map(([name]) => name.length)) + 2
  return shown.map(([name, value]) => `${paint.faint(name.padEnd(width))}${value}`)
}

/** Returns the columns for a value beside its name; 0 is a pipe, which gets whole values. */
export const valueWidth = ({ isTerminal, stdout }: Pick<Terminal, 'isTerminal' | 'stdout'>): number =>
  isTerminal ? Math.max(40, (stdout.columns || 80) - 26) : 0

/** Draws the members of a value below a title; nothing for one without members. */
export function section(title: string, value: unknown, width: number, paint: Paint): string[] {
  const rows = valueRows(value, width)
  return rows.length === 0 ? [] : ['', paint.strong(title), ...drawRows(rows, Number.MAX_SAFE_INTEGER)]
}

/** Returns the inputs or the result of a job as rows. Long values are cut, nested values are JSON. */
function valueRows(value: unknown, width: number): [name: string, value: string][] {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return []
  return Object.entries(value)
    .filter(([, one]) => one !== null && one !== undefined)
    .map(([name, one]) => [printable(name), cutText(typeof one === 'string' ? one : JSON.stringify(one), width)])
}

function cutText(text: string, width: number): string {
  const flat = printable(text).replaceAll(/\s+/g, ' ')
  return width > 0 && flat.length > width ? `${flat.slice(0, width - 1)}…` : flat
}
