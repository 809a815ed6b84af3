import type { WriteStream } from 'node:tty'
import { storedSentence } from '../client/refusal.ts'
import { lengthText } from '../terminal/quantities-text.ts'
import { cutLine, lineWidth, padded, printable } from '../terminal/styled-line.ts'
import { openLiveLines } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type JobSnapshot, unknownSnapshot } from './follow.ts'

/**
 * Shows the progress of jobs on standard error: on a terminal one live line per job; in a pipe plain lines, few enough
 * for a log. With `quiet` prints only the texts given to `say`.
 */
export function openDisplay(
  terminal: Terminal,
  labels: readonly string[],
  { quiet = false, now = () => performance.now() }: { quiet?: boolean; now?: () => number } = {},
) {
  const { stderr } = terminal
  const isLive = !quiet && Boolean((stderr as Partial<WriteStream>).isTTY)
  const begunAt = now()
  const widest = Math.max(...labels.map(label => printable(label).length))
  const jobs = labels.map(label => ({
    label: printable(label),
    snapshot: unknownSnapshot,
    at: begunAt,
    since: begunAt,
    /** False before the first snapshot and after the end. */
    shown: false,
    isFinished: false,
    reported: undefined as ReportedProgress | undefined,
  }))
  const redrawn = isLive ? openLiveLines(stderr, frame, now) : undefined

  function frame(): string[] {
    const width = Math.max(20, (stderr.columns || 80) - 1)
    return jobs
      .filter(job => job.shown)
      .map(job => progressLine(job.label.padEnd(widest), job.snapshot, now() - job.at, now() - job.since, width))
  }

  /** Writes other output, to either stream, above the lines. */
  const aside = (write: () => void): void => (redrawn ? redrawn.aside(write) : write())

  return {
    change(index: number, snapshot: JobSnapshot): void {
      const job = jobs[index]!
      if (job.isFinished) return
      job.snapshot = snapshot
      job.at = now()
      job.shown = true
      if (redrawn) return redrawn.scheduleDraw()
      if (quiet) return
      const line = pipeLine(snapshot, job.reported, job.at)
      if (!line) return
      job.reported = line.reported
      terminal.remark(job.label === '' ? line.text : `${job.label}: ${line.text}`)
    },
    /** Removes the line of the job; the caller prints its result. */
    end(index: number): void {
      Object.assign(jobs[index]!, { shown: false, isFinished: true })
      redrawn?.draw()
    },
    aside,
    say: (text: string): void => aside(() => terminal.remark(text)),
    close: (): void => redrawn?.close(),
  }
}
export type Display = ReturnType<typeof openDisplay>

const barWidth = 24
const stateWords: Record<string, string> = { processing: 'working', pending: 'waiting' }

/** Why a job waits, for users who do not know the API. The server's own message takes precedence. */
const reasons: Record<string, string> = {
  model_loading: 'its model is loading',
  queue: 'other jobs come first',
  no_capacity: 'no device has enough free memory',
  engine_failing: 'its engine fails to start',
  not_before: 'its start time is in the future',
  retry: 'it failed and will be retried',
  model_disabled: 'its model is disabled',
  paused: 'its device is paused',
}

export const reasonText = ({ waitingFor }: JobSnapshot): string =>
  waitingFor ? storedSentence(waitingFor.detail) || (reasons[waitingFor.reason] ?? printable(waitingFor.reason)) : ''

/** Joins facts with commas. A fact that is a full sentence, as reasons of the server are, follows a full stop. */
export const joinFacts = (facts: readonly string[]): string =>
  facts
    .filter(fact => fact !== '')
    .reduce((line, fact) => `${line}${/^\p{Lu}.*\.$/su.test(fact) ? '.' : ','} ${fact}`, '')
    .slice(2)

/** Returns the facts about a job that has not ended: position in the queue, time left, reason for waiting. */
function factsOf(snapshot: JobSnapshot, etaSeconds: number | null): string[] {
  const { status, queuePosition } = snapshot
  const facts: string[] = []
  const reason = status === 'pending' ? reasonText(snapshot) : ''
  if (status === 'pending' && queuePosition !== null && (queuePosition > 0 || reason === ''))
    facts.push(queuePosition === 0 ? 'next in the queue' : `${queuePosition} ahead of it in the queue`)
  if (etaSeconds !== null && etaSeconds > 0) facts.push(`about ${lengthText(etaSeconds)} left`)
  if (reason !== '') facts.push(reason)
  return facts
}

export const percentOf = (progress: number): number => Math.floor(Math.min(1, Math.max(0, progress)) * 100)

/**
 * Draws one line of at most `width` columns: `cat ━━━━━━━━──────── 42 %  about 55 s left`. `agoMs` is the age of the
 * snapshot, which is subtracted from the time left. `sinceMs` is how long the job has been followed.
 */
export function progressLine(
  label: string,
  snapshot: JobSnapshot,
  agoMs: number,
  sinceMs: number,
  width: number,
): string {
  const { status, progress } = snapshot
  const eta = snapshot.etaSeconds === null ? null : Math.round(snapshot.etaSeconds - agoMs / 1000)
  const filled = Math.floor((progress ?? 0) * barWidth)
  const state =
    status === 'completed' || (status === 'processing' && progress !== null)
      ? `${'━'.repeat(status === 'completed' ? barWidth : filled)}${'─'.repeat(status === 'completed' ? 0 : barWidth - filled)} ${String(status === 'completed' ? 100 : percentOf(progress ?? 0)).padStart(3)} %`
      : `${'─'.repeat(barWidth)} ${stateWords[status] ?? status}`
  const over = status !== 'pending' && status !== 'processing'
  const facts = [state, ...(over ? [] : [...factsOf(snapshot, eta), lengthText(sinceMs / 1000)])].join('  ')
  // The label is cut first, because the facts after it matter more.
  const room = Math.min(lineWidth(label), Math.max(8, width - lineWidth(facts) - 2))
  return cutLine(label === '' ? facts : `${padded(label, room)}  ${facts}`, width)
}

/** The state of a job at its last printed line. */
export interface ReportedProgress {
  status: string
  reason: string
  tenth: number
  queuePosition: number | null
  at: number
}

/** Minimum time between two lines that differ only in numbers. Milliseconds. */
const quietMs = 10_000

/**
 * Returns the line for a pipe, if a snapshot needs one: for every change of the status or of the reason for waiting,
 * for every tenth of the work, and at intervals for the position in the queue.
 */
export function pipeLine(
  snapshot: JobSnapshot,
  before: ReportedProgress | undefined,
  at: number,
): { text: string; reported: ReportedProgress } | undefined {
  const { status, progress, queuePosition, etaSeconds } = snapshot
  const reason = status === 'pending' ? (snapshot.waitingFor?.reason ?? '') : ''
  const tenth = status === 'processing' && progress !== null ? Math.min(9, Math.floor(progress * 10)) : 0
  const reported: ReportedProgress = { status, reason, tenth, queuePosition, at }
  // Progress of 100 % needs no line, because the end has its own.
  const moved =
    status === 'processing' ? tenth > (before?.tenth ?? 0) && progress! < 1 : queuePosition !== before?.queuePosition
  const quiet = before !== undefined && at - before.at < (status === 'processing' ? quietMs / 10 : quietMs)
  const changed = before === undefined || before.status !== status || before.reason !== reason
  if (!changed && (!moved || quiet)) return undefined
  const what =
    status === 'processing' && progress !== null && tenth > 0
      ? `${percentOf(progress)} %`
      : (stateWords[status] ?? status)
  const over = status !== 'pending' && status !== 'processing'
  return { text: joinFacts([what, ...(over ? [] : factsOf(snapshot, etaSeconds))]), reported }
}
