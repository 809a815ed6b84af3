import { redact } from '../../core/log.ts'
import type { EngineLine, EngineOutput } from '../../core/models/engine-output.ts'
import { isOutOfMemory } from '../../core/tasks/protocols/engine-text.ts'

/** Number of ended launches of each pool whose output is kept; at most a megabyte each. */
const keptAfterEnd = 8

export function openOutputs() {
  const launches = new Map<
    string,
    { modelId: string; engineId: string; pool: string; output: Output; ended: boolean }
  >()
  const followers = new Set<(line: EngineLine) => void>()
  const watchers = new Set<{ engineId: string; listener: (text: string) => void }>()

  return {
    open(options: { launchId: string; modelId: string; secrets: readonly string[]; pool?: string }): Output {
      const { launchId, modelId, secrets, pool = '' } = options
      // A launch id is the engine id and a launch number.
      const engineId = launchId.replace(/-\d+$/, '')
      const output = openOutput({
        secrets,
        onLine(line) {
          for (const follower of followers) follower({ ...line, modelId, engineId })
        },
        onUpdate(text) {
          for (const watcher of watchers) if (watcher.engineId === engineId) watcher.listener(text)
        },
      })
      launches.set(launchId, { modelId, engineId, pool, output, ended: false })
      return output
    },
    /** Marks the launch as ended. Its output is kept until `keptAfterEnd` later launches of its pool have ended. */
    ended(launchId: string): void {
      const launch = launches.get(launchId)
      if (!launch) return
      launch.ended = true
      const ended = [...launches].filter(([, one]) => one.ended && one.pool === launch.pool)
      for (const [id] of ended.slice(0, -keptAfterEnd)) launches.delete(id)
    },
    lines: (launchId: string): string[] => launches.get(launchId)?.output.lines() ?? [],
    recent(modelId?: string, limit?: number) {
      const lines = [...launches.values()]
        .filter(launch => modelId === undefined || launch.modelId === modelId)
        .flatMap(launch =>
          launch.output.entries(limit).map(line => ({ ...line, modelId: launch.modelId, engineId: launch.engineId })),
        )
        .toSorted((one, other) => one.at - other.at)
      return limit === undefined ? lines : lines.slice(Math.max(0, lines.length - limit))
    },
    /**
     * Calls the listener with what an engine prints, also with each state of a progress bar that overwrites itself, until
     * the function that it returns is called. The text may contain secrets and is neither stored nor shown.
     */
    watch(engineId: string, listener: (text: string) => void): () => void {
      const watcher = { engineId, listener }
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },
    follow(listener: (line: EngineLine) => void): () => void {
      followers.add(listener)
      return () => void followers.delete(listener)
    },
  } satisfies EngineOutput & Record<string, unknown>
}

export type EngineOutputs = ReturnType<typeof openOutputs>
export type Output = ReturnType<typeof openOutput>

export interface OutputOptions {
  lineBytes?: number
  ringBytes?: number
  secrets?: readonly string[]
  /** Called with each line as soon as it is complete. */
  onLine?: (line: { at: number; text: string }) => void
  /** Called with the end of each line, and with what an unfinished line shows now, which a progress bar overwrites. */
  onUpdate?: (text: string) => void
}

const newline = 10
const carriageReturn = 13
/** Bytes of a line that `onUpdate` gets. */
const updateBytes = 512
/** Limits the number of short lines: each line has overhead besides its text. */
const maxLines = 16_384

/**
 * Keeps the end of a process's output. Lines are truncated to `lineBytes`, and only the newest `ringBytes` are kept: a
 * broken engine can print a line of 100 MB, or empty lines without end. A carriage return begins the line again, as in a
 * terminal, so of a progress bar only its last state is kept.
 * Text that looks like a secret, and every text in `secrets`, is redacted before a line is stored or reported.
 */
export function openOutput({
  lineBytes = 64 << 10,
  ringBytes = 1 << 20,
  secrets = [],
  onLine,
  onUpdate,
}: OutputOptions = {}) {
  const kept: { at: number; text: string }[] = []
  // The oldest of `kept` that counts. To shift each would move thousands of lines: 40 µs for an empty one.
  let first = 0
  let keptBytes = 0
  let part: Buffer[] = []
  let partBytes = 0
  let truncated = false
  let changes = 0
  let previous: string | undefined
  let previousState: Buffer | undefined

  const clear = () => {
    part = []
    partBytes = 0
    truncated = false
  }
  const add = () => {
    const bytes = part.length === 1 ? part[0]! : Buffer.concat(part, partBytes)
    let lineText = redact(bytes.toString('utf8').replace(/\r$/, '').replace(/^.*\r/s, ''))
    for (const one of secrets) lineText = lineText.replaceAll(one, '[redacted]')
    const line = lineText + (truncated ? ' … (cut)' : '')
    clear()
    if (line !== previous) changes++
    previous = line
    const entry = { at: Date.now(), text: line }
    kept.push(entry)
    keptBytes += line.length
    while ((keptBytes > ringBytes || kept.length - first > maxLines) && kept.length - first > 1)
      keptBytes -= kept[first++]!.text.length
    if (first > kept.length / 2) {
      kept.splice(0, first)
      first = 0
    }
    onLine?.(entry)
  }
  const append = (whole: Buffer) => {
    // One at the end may belong to a Windows line end.
    const begin = whole.lastIndexOf(carriageReturn, -2) + 1
    const piece = begin > 0 && begin < whole.length ? whole.subarray(begin) : whole
    if (piece !== whole) clear()
    const remaining = lineBytes - partBytes
    if (piece.length > remaining) truncated = true
    if (remaining <= 0 || piece.length === 0) return
    // Copy: a slice would keep the pipe's whole 64 kB buffer alive.
    const bytes = Buffer.from(piece.subarray(0, remaining))
    part.push(bytes)
    partBytes += bytes.length
  }
  const update = () => {
    if (!onUpdate || part.length === 0) return
    const bytes = partBytes <= updateBytes ? Buffer.concat(part) : part.at(-1)!
    onUpdate(bytes.subarray(-updateBytes).toString('utf8'))
  }
  return {
    push(chunk: Buffer): void {
      let from = 0
      for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
        append(chunk.subarray(from, at))
        update()
        add()
        from = at + 1
      }
      append(chunk.subarray(from))
      if (partBytes === 0) return
      update()
      // A progress bar begins its line again for each state and ends it only when it is done.
      if (chunk.indexOf(carriageReturn, from) < 0) return
      const state = Buffer.concat(part)
      if (!previousState || !state.equals(previousState)) changes++
      previousState = state
    },
    /** Ends the last line that had no newline. */
    end(): void {
      if (partBytes > 0) add()
    },
    /** The retained lines, oldest first. */
    lines: (): string[] => kept.slice(first).map(({ text }) => text),
    /** The newest `limit` lines (default: all) with the time each was complete, in epoch milliseconds. */
    entries: (limit = kept.length) => kept.slice(Math.max(first, kept.length - limit)),
    /**
     * Number of lines so far that differ from the line before, and of states of a progress bar that differ from the state
     * before: what is only repeated is no progress.
     */
    get changes(): number {
      return changes
    },
  }
}

const errorPattern =
  /error|exception|fatal|out of memory|cannot|can't|could not|failed|abort|invalid|no such|not found/i
const noisePattern =
  /^\s*(at |For further information visit |Node\.js v|\^+\s*$|[{}\]]|Segmentation fault|Killed|Terminated|unshare: child exit failed)/

/** vLLM's last errors only refer to that of a process which it started, with several tracebacks between them. */
const referencePattern = /root cause/i
const namedErrorPattern = /\b\w*(error|exception): /i
const referenceLines = 1_000

/** llama.cpp, and what is built on it, ends with errors that name no cause, after the line about memory that it lacks. */
const wholePattern = /failed to (load|create|initiali[sz]e)( \w+)? (model|context)|model loading error/i
/** It goes on without. */
const sparedPattern = /pinned/i

/** Programs in Rust print their error, `Caused by:` and one line for each cause, the last of which names no thing. */
const causesPattern = /^Caused by:$/
const causePattern = /^\s+(?:\d+: )?(?=\S)/

/** Returns an error and its causes as one line; undefined where the output has no such list. */
function errorWithCauses(lines: readonly string[]): string | undefined {
  const at = lines.findLastIndex(line => causesPattern.test(line))
  if (at < 1) return undefined
  const next = lines.slice(at + 1)
  const end = next.findIndex(line => !causePattern.test(line))
  const causes = next.slice(0, end < 0 ? undefined : end).map(line => line.replace(causePattern, ''))
  return [lines[at - 1], ...causes].join(': ')
}

/**
 * Returns the line that best explains why a process ended: an error with its causes, else the last line that mentions an
 * error, else the last. If that one refers to a root cause, the last named error before it; if it only says that all has
 * failed, the last one before it about memory.
 */
export function lastError(lines: readonly string[]): string {
  const recent = lines.slice(-40).filter(line => line.trim() !== '' && !noisePattern.test(line))
  const last = errorWithCauses(recent) ?? recent.findLast(line => errorPattern.test(line)) ?? recent.at(-1) ?? ''
  const isCause = (line: string): boolean => namedErrorPattern.test(line) && !referencePattern.test(line)
  const isMemory = (line: string): boolean => isOutOfMemory(line) && !sparedPattern.test(line)
  const cause = referencePattern.test(last)
    ? lines.slice(-referenceLines).findLast(isCause)
    : wholePattern.test(last)
      ? (recent.findLast(isMemory) ?? lines.slice(-40).findLast(isMemory))
      : undefined
  const lineText = cause ?? last
  // API callers see this line: remove control characters and limit the length.
  return lineText
    .replaceAll(/\p{Cc}\[[0-9;]*m/gu, '')
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 300)
}
