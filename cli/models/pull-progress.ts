import type { PullEvent } from '../../core/models/hub/pull.ts'
import { printable } from '../terminal/paint.ts'
import { lengthText, sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Minimum time between updates on a terminal and with `--json`. Milliseconds. */
const drawEveryMs = 100
const jsonEveryMs = 1_000
/** In a pipe, one line per tenth of a file. */
const parts = 10
/** The rate is averaged over this time, short enough to follow changes and long enough not to flicker. Milliseconds. */
const rateOverMs = 5_000
const barWidth = 24

/** Progress of the current file. */
export interface Progress {
  file: string
  bytes: number
  total: number
  /** Bytes per second; undefined while unknown. */
  rate: number | undefined
}

/** Draws one line: `m.gguf ━━━━━━━━────── 45 %  1.2 GiB of 2.6 GiB  34 MiB/s  42 s left`. */
export function pullProgressLine({ file, bytes, total, rate }: Progress, width: number): string {
  const part = total === 0 ? 1 : bytes / total
  const filled = Math.floor(part * barWidth)
  const bar = '━'.repeat(filled) + '─'.repeat(barWidth - filled)
  const facts = [`${bar} ${String(Math.floor(part * 100)).padStart(3)} %`, `${sizeText(bytes)} of ${sizeText(total)}`]
  if (rate !== undefined) facts.push(`${sizeText(rate)}/s`)
  if (rate !== undefined && rate > 0 && bytes < total) facts.push(`${lengthText((total - bytes) / rate)} left`)
  // The name is cut first, because the facts after it matter more.
  const room = width - facts.join('  ').length - 2
  const name = printable(file).split('/').at(-1)!
  if (room < 8) return facts.join('  ').slice(0, Math.max(0, width - 1))
  return [name.length > room ? `${name.slice(0, room - 1)}…` : name, ...facts].join('  ')
}

/**
 * Shows a download: one live line on a terminal, a line per tenth in a pipe, one JSON object per line with `--json`.
 * `now` is any clock in milliseconds.
 */
export function openPullDisplay(terminal: Terminal, asJson: boolean, now: () => number = () => performance.now()) {
  const sizes = new Map<string, number>()
  const isLive = !asJson && terminal.stderr.isTTY
  let samples: { at: number; bytes: number }[] = []
  let shownAt = Number.NEGATIVE_INFINITY
  let shownPart = 0

  const begin = () => {
    samples = []
    shownAt = Number.NEGATIVE_INFINITY
    shownPart = 0
  }
  function progress(file: string, bytes: number): void {
    const total = sizes.get(file) ?? bytes
    const at = now()
    samples.push({ at, bytes })
    while (samples.length > 2 && at - samples[0]!.at > rateOverMs) samples.shift()
    const [first] = samples
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
    } else if (isLive) {
      if (at - shownAt < drawEveryMs && !last) return
      terminal.progress(pullProgressLine({ file, bytes, total, rate }, terminal.stderr.columns || 80))
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
    if (isLive) terminal.progress('')
    terminal.remark(text)
  }

  return function show(event: PullEvent): void {
    if (event.event === 'progress') return progress(event.file, event.bytes)
    if (event.event === 'plan') for (const { file, bytes } of event.files) sizes.set(file, bytes)
    if (event.event === 'retry') begin()
    if (asJson) return void write(jsonOf(event))
    switch (event.event) {
      case 'connect':
        return terminal.waiting(`Requesting ${printable(event.what)} from ${printable(event.host)}…`)
      case 'plan': {
        const missing = event.files.filter(({ present }) => !present)
        const sum = missing.reduce((all, { bytes }) => all + bytes, 0)
        const what = missing.length === 1 ? printable(missing[0]!.file) : `${missing.length} files`
        if (missing.length > 0) say(`Downloading ${what} (${sizeText(sum)}) from ${printable(event.source)}`)
        if (event.others.length > 0)
          say(
            `Other files: ${printable(event.others.slice(0, 12).join(', '))}${event.others.length > 12 ? ` and ${event.others.length - 12} more` : ''}`,
          )
        return
      }
      case 'wait':
        return say(`Another process is downloading ${printable(event.file)}. Waiting for it.`)
      case 'resume':
        samples = [{ at: now(), bytes: event.bytes }]
        return say(`Resuming ${printable(event.file)} after ${sizeText(event.bytes)}.`)
      case 'retry':
        return say(`${printable(event.reason)} Retrying in ${lengthText(event.waitMs / 1000)}.`)
      case 'file':
        begin()
        if (isLive) terminal.progress('')
        return
    }
  }
}

/** Returns an event for `--json`, with field names in the style of the API. */
function jsonOf(event: Exclude<PullEvent, { event: 'progress' }>): object {
  if (event.event !== 'retry') return event
  const { waitMs, ...rest } = event
  return { ...rest, wait_ms: waitMs }
}
