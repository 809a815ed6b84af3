import { hash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Cpu } from '../cpu/cpu.ts'
import type { Done, ThreadWork } from '../cpu/thread-work.ts'
import { Failure } from '../failure.ts'
import { checkBounds, type JsonBounds } from '../json.ts'
import type { BatchFault } from '../store/store.ts'
import { type BatchTarget, maxFaults, maxLines, readLine } from './batch-line.ts'

/** Bytes that are read at a time. */
const pieceBytes = 256 << 10

/** A line of a file, without its line break. */
interface FileLine {
  text: string
  /** From 1; empty lines count. */
  line: number
  /** The position after the line, bytes. */
  end: number
}

/** A line that is longer than allowed has no text. */
type RawLine = FileLine | (Omit<FileLine, 'text'> & { text: null })

/**
 * Yields the lines of a file from a position on. Empty lines are skipped, and the bytes of lines that are too long are not
 * kept.
 */
async function* linesOf(
  path: string,
  options: {
    offset?: number
    line?: number
    maxBytes: number
    pieceSize?: number
    /** Called after every line, also an empty one; lets other work run when it is time. */
    pause?: () => Promise<void> | undefined
  },
): AsyncGenerator<RawLine> {
  const { offset = 0, line = 1, maxBytes, pieceSize = pieceBytes, pause } = options
  await using file = await open(path, 'r')
  const piece = Buffer.allocUnsafe(pieceSize)
  let kept: Buffer[] = []
  let bytes = 0
  let position = offset
  let number = line

  const take = (part: Buffer): void => {
    bytes += part.length
    if (bytes <= maxBytes) kept.push(Buffer.from(part))
    else kept = []
  }
  function* ended(end: number): Generator<RawLine> {
    const text = bytes > maxBytes ? null : Buffer.concat(kept).toString('utf8').trim()
    kept = []
    bytes = 0
    if (text !== '') yield { text, line: number, end }
    number++
  }

  for (;;) {
    const { bytesRead } = await file.read({ buffer: piece, position })
    if (bytesRead === 0) break
    let from = 0
    for (let at = piece.indexOf(10); at !== -1 && at < bytesRead; at = piece.indexOf(10, from)) {
      take(piece.subarray(from, at))
      from = at + 1
      yield* ended(position + from)
      const pausing = pause?.()
      if (pausing) await pausing
    }
    if (from < bytesRead) take(piece.subarray(from, bytesRead))
    position += bytesRead
  }
  if (bytes > 0) yield* ended(position)
}

/** What the input file of a batch contains. */
export interface CheckedFile {
  /** Its lines that are not empty. */
  total: number
  /** The first faults. */
  faults: BatchFault[]
  /** The models that lines name, in the order of the file, each with its first lines. */
  models: { id: string; lines: number[] }[]
}

/** What the check of a file requires of its lines. */
export interface LineRules extends BatchTarget {
  /** Bounds of the JSON of a line, as for the body of a request. */
  bounds: JsonBounds
}

export interface InputCheckOptions extends LineRules {
  path: string
  /** The longest line, bytes. */
  maxBytes: number
}

/** The most different models of which lines are noted. */
const maxModels = 1_000

/** What the check of a file needs of a line. */
export type LineSummary = { customId: string; model: string | null } | { fault: Omit<BatchFault, 'line'> }

/** Parses a line. Pure. */
export function lineSummary(text: string, { bounds, ...target }: LineRules): LineSummary {
  try {
    // The line itself is one level and four members.
    checkBounds(Buffer.from(text), { depth: bounds.depth + 1, keys: bounds.keys + 4 }, 'The line')
  } catch (thrown) {
    return { fault: { code: 'invalid_json_line', param: null, message: Failure.from(thrown).message } }
  }
  const read = readLine(text, target)
  if ('fault' in read) return read
  const { model } = read.body
  return { customId: read.customId, model: typeof model === 'string' ? model : null }
}

/** How the check of a file shares the event loop. */
interface CheckTurns {
  /** Lets other work run when it is time. */
  pause: () => Promise<void> | undefined
  /** `lineSummary`, in a thread for a long line. */
  summary: (text: string, rules: LineRules) => LineSummary | Promise<LineSummary>
}

/** Checks the lines of an input file. Its memory does not depend on the size of the file, only on the number of lines. */
export async function checkFile(
  { path, maxBytes, ...rules }: InputCheckOptions,
  { pause, summary }: CheckTurns,
): Promise<CheckedFile> {
  const faults: BatchFault[] = []
  // Digests, so that long ids need no more memory than short ones.
  const ids = new Set<string>()
  const models = new Map<string, number[]>()
  let total = 0
  for await (const { text, line } of linesOf(path, { maxBytes, pause })) {
    if (faults.length >= maxFaults) break
    total++
    if (total > maxLines) {
      faults.push({ code: 'too_many_lines', param: null, line, message: `The file has more than ${maxLines} lines.` })
      break
    }
    if (text === null) {
      const message = `The line has more than ${Math.floor(maxBytes / 1024)} KiB, the maximum. Name media by URL or by the id of a file.`
      faults.push({ code: 'invalid_json_line', param: null, line, message })
      continue
    }
    const read = await summary(text, rules)
    if ('fault' in read) {
      faults.push({ ...read.fault, line })
      continue
    }
    const digest = hash('sha256', read.customId, 'base64').slice(0, 22)
    if (ids.has(digest)) {
      const message = `Another line before has the 'custom_id' '${read.customId.slice(0, 128)}'. Each line needs its own.`
      faults.push({ code: 'duplicate_custom_id', param: 'custom_id', line, message })
    }
    ids.add(digest)
    const { model } = read
    if (!rules.namesModel || model === null) continue
    const lines = models.get(model)
    if (lines) {
      if (lines.length < maxFaults) lines.push(line)
    } else if (models.size < maxModels) models.set(model, [line])
  }
  if (total === 0) faults.push({ code: 'empty_file', param: null, line: null, message: 'The file has no lines.' })
  return { total, faults, models: [...models].map(([id, lines]) => ({ id, lines })) }
}

/** A valid line of an input file. */
export interface InputLine {
  customId: string
  /** The body, as JSON text. */
  body: string
  /** The model that the body names; null if it names none. */
  model: string | null
  line: number
  end: number
}

export interface PageOptions {
  path: string
  target: BatchTarget
  /** The position of the first line, bytes, and its number. */
  offset: number
  line: number
  /** Ends the page after this many lines, or with the line that exceeds this many bytes. */
  lines: number
  bytes: number
  /** The longest line, bytes. */
  maxBytes: number
}

/**
 * Reads the next lines of an input file that was checked. Ends the page before a line of more than `largest` characters;
 * undefined if that is the first.
 */
export async function readPage(
  { path, target, offset, line, lines, bytes, maxBytes }: PageOptions,
  largest = Infinity,
): Promise<InputLine[] | undefined> {
  const page: InputLine[] = []
  const pieceSize = Math.min(pieceBytes, bytes)
  for await (const { text, line: number, end } of linesOf(path, { offset, line, maxBytes, pieceSize })) {
    if (text !== null && text.length > largest) return page.length > 0 ? page : undefined
    const read = text === null ? undefined : readLine(text, target)
    if (!read || 'fault' in read) throw new Error(`Line ${number} of an input file has changed since it was checked.`)
    const { model } = read.body
    page.push({
      customId: read.customId,
      body: JSON.stringify(read.body),
      model: typeof model === 'string' ? model : null,
      line: number,
      end,
    })
    if (page.length >= lines || end - offset >= bytes) break
  }
  return page
}

/** Thread work on the input files of batches. */
export const batchWork = {
  checkBatchLine: ({ text, rules }: { text: string; rules: LineRules }): Done<LineSummary> => ({
    value: lineSummary(text, rules),
  }),
  readBatch: async (options: PageOptions): Promise<Done<InputLine[]>> => ({ value: (await readPage(options)) ?? [] }),
} satisfies ThreadWork

/** Longer lines are parsed in a thread. Parsing 64 KiB takes half a millisecond. */
const largestInline = 64 << 10

/** Reads the input files of batches without blocking the event loop. */
export function openInputFiles({ calling }: Pick<Cpu, 'calling'>) {
  const call = calling<typeof batchWork>()
  return {
    /** Checks all lines, a millisecond at a time: a thread for it would need more memory than all other work of a batch. */
    check(options: InputCheckOptions, signal: AbortSignal): Promise<CheckedFile> {
      let began = performance.now()
      async function turn(): Promise<void> {
        await nextTurn()
        signal.throwIfAborted()
        began = performance.now()
      }
      return checkFile(options, {
        pause: () => (performance.now() - began > 1 ? turn() : undefined),
        summary: (text, rules) =>
          text.length > largestInline
            ? call('batches', 'checkBatchLine', { text, rules }, { signal })
            : lineSummary(text, rules),
      })
    },
    /** Reads the next lines, at most about 64 KiB of them or one larger line. Empty at the end of the file. */
    async page(options: Omit<PageOptions, 'bytes'>): Promise<InputLine[]> {
      const page = await readPage({ ...options, bytes: largestInline }, largestInline)
      return page ?? call('batches', 'readBatch', { ...options, lines: 1, bytes: largestInline })
    },
  }
}
export type InputFiles = ReturnType<typeof openInputFiles>
