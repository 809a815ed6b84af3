import type { PullEvent } from '../../core/models/hub/pull.ts'
import { printable } from '../paint.ts'
import { lengthText, sizeText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'

/** How often each way of showing says how far it is. Milliseconds. */
const drawEveryMs = 100
const jsonEveryMs = 1_000
/** A pipe hears of every tenth of a file. */
const parts = 10
/** The rate is that of the last few seconds: it follows what the line does now and does not flicker. */
const rateOverMs = 5_000
const barWidth = 24

/** What is known of the file that is under way. */
export interface Progress {
  file: string
  bytes: number
  total: number
  /** Bytes per second; undefined while nobody can tell. */
  rate: number | undefined
}

/** One line: `m.gguf ━━━━━━━━────── 45 %  1.2 GiB of 2.6 GiB  34 MiB/s  42 s left`. */
export function progressLine({ file, bytes, total, rate }: Progress, width: number): string {
  const part = total === 0 ? 1 : bytes / total
  const filled = Math.floor(part * barWidth)
  const bar = '━'.repeat(filled) + '─'.repeat(barWidth - filled)
  const facts = [`${bar} ${String(Math.floor(part * 100)).padStart(3)} %`, `${sizeText(bytes)} of ${sizeText(total)}`]
  if (rate !== undefined) facts.push(`${sizeText(rate)}/s`)
  if (rate !== undefined && rate > 0 && bytes < total) facts.push(`${lengthText((total - bytes) / rate)} left`)
  // The name gives way: what counts stands behind it.
  const room = width - facts.join('  ').length - 2
  const name = printable(file).split('/').at(-1)!
  if (room < 8) return facts.join('  ').slice(0, Math.max(0, width - 1))
  return [name.length > room ? `${name.slice(0, room - 1)}…` : name, ...facts].join('  ')
}

/**
 * Shows a download: one line that moves on a terminal, lines for every tenth in a pipe, one JSON object per line with
 * `--json`. `now` is any clock in milliseconds.
 */
export function openPullDisplay(terminal: Terminal, asJson: boolean, now: () => number = () => performance.now()) {
  const sizes = new Map<string, number>()
  const moving = !asJson && terminal.stderr.isTTY
  let marks: { at: number; bytes: number }[] = []
  let shownAt = Number.NEGATIVE_INFINITY
  let shownPart = 0

  const begin = () => {
    marks = []
    shownAt = Number.NEGATIVE_INFINITY
    shownPart = 0
  }
  function progress(file: string, bytes: number): void {
    const total = sizes.get(file) ?? bytes
    const at = now()
    marks.push({ at, bytes })
    while (marks.length > 2 && at - marks[0]!.at > rateOverMs) marks.shift()
    const [first] = marks
    const rate = at > first!.at ? ((bytes - first!.bytes) * 1000) / (at - first!.at) : undefined
    const last = bytes === total
    if (asJson) {
      if (at - shownAt < jsonEveryMs && !last) return
      write({
        event: 'progress',
        file,
        bytes,
        total_bytes: total,
        bytes_per_second: rate === undefined ? null : Math.round(rate),
      })
    } else if (moving) {
      if (at - shownAt < drawEveryMs && !last) return
      terminal.progress(progressLine({ file, bytes, total, rate }, terminal.stderr.columns || 80))
    } else {
      const part = total === 0 ? parts : Math.floor((bytes / total) * parts)
      if (part <= shownPart) return
      shownPart = part
      terminal.remark(`${printable(file)}: ${part * (100 / parts)} % of ${sizeText(total)}`)
    }
    shownAt = at
  }
  const write = (value: object) => terminal.stdout.write(`${JSON.stringify(value)}\n`)
  const say = (text: string) => {
    if (moving) terminal.progress('')
    terminal.remark(text)
  }

  return function show(event: PullEvent): void {
    if (event.event === 'progress') return progress(event.file, event.bytes)
    if (event.event === 'plan') for (const { file, bytes } of event.files) sizes.set(file, bytes)
    if (event.event === 'retry') begin()
    if (asJson) return void write(jsonOf(event))
    switch (event.event) {
      case 'connect':
        return terminal.waiting(`Asking ${printable(event.host)} for ${printable(event.what)}…`)
      case 'plan': {
        const missing = event.files.filter(({ present }) => !present)
        const sum = missing.reduce((all, { bytes }) => all + bytes, 0)
        const what = missing.length === 1 ? printable(missing[0]!.file) : `${missing.length} files`
        if (missing.length > 0) say(`Downloading ${what} (${sizeText(sum)}) from ${printable(event.source)}`)
        if (event.others.length > 0)
          say(
            `Also there: ${printable(event.others.slice(0, 12).join(', '))}${event.others.length > 12 ? ` and ${event.others.length - 12} more` : ''}`,
          )
        return
      }
      case 'wait':
        return say(`Another process is downloading ${printable(event.file)}; waiting for it.`)
      case 'resume':
        marks = [{ at: now(), bytes: event.bytes }]
        return say(`Going on with ${printable(event.file)} after ${sizeText(event.bytes)}.`)
      case 'retry':
        return say(`${printable(event.reason)} Trying again in ${lengthText(event.waitMs / 1000)}.`)
      case 'file':
        begin()
        if (moving) terminal.progress('')
        return
    }
  }
}

/** An event as it is printed: names as in the API. */
function jsonOf(event: Exclude<PullEvent, { event: 'progress' }>): object {
  if (event.event !== 'retry') return event
  const { waitMs, ...rest } = event
  return { ...rest, wait_ms: waitMs }
}
