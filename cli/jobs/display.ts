import type { WriteStream } from 'node:tty'
import { openLiveLines } from '../terminal/live-lines.ts'
import { printable } from '../terminal/paint.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type JobSnapshot, unknownSnapshot } from './follow.ts'
import { pipeLine, progressLine, type ReportedProgress } from './progress-line.ts'

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
