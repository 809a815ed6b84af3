import type { WriteStream } from 'node:tty'
import { printable } from '../paint.ts'
import type { Terminal } from '../terminal.ts'
import { type Moment, unknownMoment } from './moment.ts'
import { lineFor, progressLine, type Said } from './progress-line.ts'

/** How often a terminal is drawn at most, and how often at least: what is left counts down. Milliseconds. */
const drawEveryMs = 100
const tickMs = 1_000

/**
 * Shows how jobs are getting on, on standard error: a line for each that moves, on a terminal; plain lines in a pipe, at
 * a rate that a log bears. With `quiet` nothing but what is said.
 */
export function openDisplay(
  terminal: Terminal,
  labels: readonly string[],
  { quiet = false, now = () => performance.now() }: { quiet?: boolean; now?: () => number } = {},
) {
  const { stderr } = terminal
  const moving = !quiet && Boolean((stderr as Partial<WriteStream>).isTTY)
  const begunAt = now()
  const widest = Math.max(...labels.map(label => printable(label).length))
  const jobs = labels.map(label => ({
    label: printable(label),
    moment: unknownMoment,
    at: begunAt,
    since: begunAt,
    /** Nothing is shown of it before anything is known, nor when it is over. */
    shown: false,
    over: false,
    said: undefined as Said | undefined,
  }))
  let drawnLines = 0
  let drawnAt = Number.NEGATIVE_INFINITY

  /** Where the lines stand nothing stands any more; the cursor is where they began. */
  const erased = () => (drawnLines === 0 ? '' : `\r${drawnLines > 1 ? `\u001b[${drawnLines - 1}A` : ''}\u001b[J`)
  function erase(): void {
    if (drawnLines > 0) stderr.write(erased())
    drawnLines = 0
  }
  function draw(): void {
    if (!moving) return
    const width = Math.max(20, (stderr.columns || 80) - 1)
    const lines = jobs
      .filter(job => job.shown)
      .map(job => progressLine(job.label.padEnd(widest), job.moment, now() - job.at, now() - job.since, width))
    const text = erased() + lines.join('\n')
    drawnLines = lines.length
    drawnAt = now()
    if (text !== '') stderr.write(text)
  }
  const timer = moving ? setInterval(draw, tickMs) : undefined
  let soon: NodeJS.Timeout | undefined
  /** Now, or as soon as a terminal bears it. */
  function drawSoon(): void {
    const restMs = drawEveryMs - (now() - drawnAt)
    if (restMs <= 0) return draw()
    soon ??= setTimeout(() => {
      soon = undefined
      draw()
    }, restMs)
  }

  /** Writes something else, to either stream, above the lines. */
  const aside = (write: () => void): void => {
    erase()
    write()
    draw()
  }

  return {
    change(index: number, moment: Moment): void {
      const job = jobs[index]!
      if (job.over) return
      job.moment = moment
      job.at = now()
      job.shown = true
      if (moving) return drawSoon()
      if (quiet) return
      const line = lineFor(moment, job.said, job.at)
      if (!line) return
      job.said = line.said
      terminal.remark(job.label === '' ? line.text : `${job.label}: ${line.text}`)
    },
    /** The job has no line any more: what there is to say of its end is said elsewhere. */
    end(index: number): void {
      Object.assign(jobs[index]!, { shown: false, over: true })
      draw()
    },
    aside,
    say: (text: string): void => aside(() => terminal.remark(text)),
    close(): void {
      clearInterval(timer)
      clearTimeout(soon)
      erase()
    },
  }
}
export type Display = ReturnType<typeof openDisplay>
