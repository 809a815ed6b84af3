import { redact } from '../../core/log.ts'

export interface Output {
  /** Takes bytes as they come from the process. */
  push(chunk: Buffer): void
  /** Ends the last line that had no newline. */
  end(): void
  /** The lines that are kept, oldest first. */
  lines(): string[]
  /** The newest of them with when each was complete, epoch milliseconds; all where no number is given. */
  entries(most?: number): { at: number; text: string }[]
  /** Lines seen so far that differ from the one before: an engine that repeats itself is not getting on. */
  readonly news: number
}

export interface OutputOptions {
  lineBytes?: number
  ringBytes?: number
  secrets?: readonly string[]
  /** Called with each line as soon as it is complete. */
  heard?: (line: { at: number; text: string }) => void
}

const newline = 10
/** However short they are: a line costs more than its text. */
const maxLines = 16_384

/**
 * Keeps the end of what a process prints. Bounded both ways: a line longer than `lineBytes` is cut and the rest of it
 * dropped, and of all lines the newest `ringBytes` are kept. A broken engine can print a line of 100 MB, or empty lines
 * without an end.
 * What looks like a secret, and every text in `secrets`, is blacked out before anybody sees the line.
 */
export function openOutput({
  lineBytes = 64 << 10,
  ringBytes = 1 << 20,
  secrets = [],
  heard,
}: OutputOptions = {}): Output {
  const kept: { at: number; text: string }[] = []
  let keptBytes = 0
  let part: Buffer[] = []
  let partBytes = 0
  let cut = false
  let news = 0
  let previous: string | undefined

  const add = () => {
    const bytes = part.length === 1 ? part[0]! : Buffer.concat(part, partBytes)
    let lineText = redact(bytes.toString('utf8').replace(/\r$/, ''))
    for (const one of secrets) lineText = lineText.replaceAll(one, '[redacted]')
    const line = lineText + (cut ? ' … (cut)' : '')
    part = []
    partBytes = 0
    cut = false
    if (line !== previous) news++
    previous = line
    const entry = { at: Date.now(), text: line }
    kept.push(entry)
    keptBytes += line.length
    while ((keptBytes > ringBytes || kept.length > maxLines) && kept.length > 1) keptBytes -= kept.shift()!.text.length
    heard?.(entry)
  }
  const take = (piece: Buffer) => {
    const room = lineBytes - partBytes
    if (piece.length > room) cut = true
    if (room <= 0 || piece.length === 0) return
    // Copied: a slice would keep the pipe's whole 64 kB buffer alive for the sake of a few bytes.
    const bytes = Buffer.from(piece.subarray(0, room))
    part.push(bytes)
    partBytes += bytes.length
  }
  return {
    push(chunk) {
      let from = 0
      for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
        take(chunk.subarray(from, at))
        add()
        from = at + 1
      }
      take(chunk.subarray(from))
    },
    end() {
      if (partBytes > 0) add()
    },
    lines: () => kept.map(({ text }) => text),
    entries: (most = kept.length) => kept.slice(Math.max(0, kept.length - most)),
    get news() {
      return news
    },
  }
}

const telling = /error|exception|fatal|out of memory|cannot|can't|could not|failed|abort|invalid|no such|not found/i
const noise = /^\s*(at |Node\.js v|\^+\s*$|[{}\]]|Segmentation fault|Killed|Terminated|unshare: child exit failed)/

/** The line that says best why a process ended: the last one that speaks of a fault, else the last one at all. */
export function lastWords(lines: readonly string[]): string {
  const recent = lines.slice(-40).filter(line => line.trim() !== '' && !noise.test(line))
  const lineText = recent.findLast(line => telling.test(line)) ?? recent.at(-1) ?? ''
  // An engine's output reaches callers in this one line: no control characters, no endless text.
  return lineText
    .replaceAll(/\p{Cc}\[[0-9;]*m/gu, '')
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 300)
}
