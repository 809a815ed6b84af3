import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { isId } from '../../core/ids.ts'
import type { BatchStatus } from '../../core/store/store.ts'
import { type Api, type Client, dataOf } from '../client/client.ts'
import { formOf } from '../client/form.ts'
import { exitCodes, refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'
import { openLiveLines } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'

type Batch = Api['Batch']

const ended: ReadonlySet<BatchStatus> = new Set(['completed', 'failed', 'expired', 'cancelled'])
const hasEnded = ({ status }: Batch): boolean => ended.has(status)

export const getBatch = ({ api }: Client, id: string, signal?: AbortSignal): Promise<Batch> =>
  dataOf(api.GET('/std/v1/batches/{id}', { params: { path: { id } }, signal }))

export const listBatches = ({ api }: Client, limit: number): Promise<Api['BatchList']> =>
  dataOf(api.GET('/std/v1/batches', { params: { query: { limit } } }))

/** Finds a batch by its id, or by the end of the id of one of the newest hundred. Throws `not_found` and usage. */
export async function findBatchId(client: Client, text: string): Promise<string> {
  if (text.startsWith('batch_') && isId(text)) return text
  const part = text.replace(/^batch_/, '').toUpperCase()
  if (part.length < 4 || !/^[0-9A-Z]+$/.test(part))
    throw usageFailure(`'${printable(text)}' is not a batch id. Give the whole id, or 4 or more characters of its end.`)
  const { data } = await listBatches(client, 100)
  const found = data.filter(({ id }) => id.endsWith(part))
  if (found.length === 1) return found[0]!.id
  if (found.length > 1) throw usageFailure(`'${printable(text)}' matches ${found.length} batches. Give more of the id.`)
  throw refused('not_found', `No batch has an id that ends with '${printable(text)}'. See: infer batch list`)
}

/** `in_progress` as people write it. */
export const batchStatusText = ({ status }: Batch): string => status.replace('_', ' ')

/** How many lines there are and what became of them. */
export function countsText({ request_counts: { total, completed, failed } }: Batch): string {
  const counts = `${completed} of ${total} completed`
  return failed > 0 ? `${counts}, ${failed} failed` : counts
}

const barWidth = 24
/** Milliseconds between two reads: short at first, for small batches. */
const [firstMs, longestMs] = [200, 2_000]

/** One line of progress: `in progress ━━━━────────── 42 %  210 of 500 completed`. */
function batchLine(batch: Batch): string {
  const { total, completed, failed } = batch.request_counts
  const part = total === 0 ? 0 : (completed + failed) / total
  const filled = Math.floor(part * barWidth)
  const bar = `${'━'.repeat(filled)}${'─'.repeat(barWidth - filled)} ${String(Math.floor(part * 100)).padStart(3)} %`
  return `${batchStatusText(batch)} ${bar}  ${countsText(batch)}`
}

interface FollowBatchOptions {
  terminal: Terminal
  json: boolean
  signal: AbortSignal
}

/** Follows a batch to its end, prints how it has ended, and sets the exit code. */
export async function followBatch(client: Client, id: string, options: FollowBatchOptions): Promise<void> {
  const { terminal, json } = options
  const batch = await batchAtEnd(client, id, options)
  if (!json) return reportEnd(batch, terminal)
  terminal.json(batch)
  setEndCode(batch, terminal)
}

/** Shows the progress of a batch: a bar on a terminal, a line for each change in a pipe. */
async function batchAtEnd(
  client: Client,
  id: string,
  { terminal, json: quiet, signal }: FollowBatchOptions,
): Promise<Batch> {
  let batch = await getBatch(client, id, signal)
  const live =
    terminal.stderr.isTTY && !quiet ? openLiveLines(terminal.stderr, () => [batchLine(batch)], Date.now) : undefined
  let said = ''
  try {
    for (let waitMs = firstMs; ; waitMs = Math.min(longestMs, waitMs * 1.5)) {
      const line = `${batchStatusText(batch)}: ${countsText(batch)}`
      if (live) live.draw()
      else if (!quiet && line !== said) terminal.remark(line)
      said = line
      if (hasEnded(batch)) return batch
      await delay(waitMs, undefined, { signal })
      batch = await getBatch(client, id, signal)
    }
  } finally {
    live?.close()
  }
}

/** Says how a batch has ended, and sets the exit code. */
export function reportEnd(batch: Batch, terminal: Terminal): void {
  for (const { line, message } of batch.errors?.data ?? [])
    terminal.remark(line === null ? printable(message) : `Line ${line}: ${printable(message)}`)
  terminal.print(`${batch.id} is ${batchStatusText(batch)}: ${countsText(batch)}.`)
  if (batch.output_file_id !== null) terminal.remark(`Answers: infer batch results ${batch.id}`)
  if (batch.error_file_id !== null) terminal.remark(`Errors: infer batch results ${batch.id} --errors`)
  setEndCode(batch, terminal)
}

/** A batch that did not complete, or in which no line did, is a failure. */
function setEndCode({ status, request_counts: counts }: Batch, terminal: Terminal): void {
  if (status !== 'completed' || (counts.total > 0 && counts.completed === 0)) terminal.setExitCode(exitCodes.failed)
}

/** The longest first line that is searched for the endpoint, bytes. */
const maxFirstLine = 32 << 20

/** The input of a batch: a file, or standard input for `-`. */
interface BatchInput {
  /** The endpoint of its first line; undefined if that names none. */
  endpoint: string | undefined
  name: string
  bytes: AsyncIterable<Uint8Array>
}

/** Opens the input and reads its first line. */
export async function openBatchInput(path: string, stdin: Readable): Promise<BatchInput> {
  // Fails now and with the name of the file, not during the upload.
  if (path !== '-') await (await open(path, 'r')).close()
  const source = (path === '-' ? stdin : createReadStream(path)) as AsyncIterable<Uint8Array>
  const pieces = source[Symbol.asyncIterator]()
  const begun: Uint8Array[] = []
  let length = 0
  for (let piece = await pieces.next(); !piece.done; piece = await pieces.next()) {
    begun.push(piece.value)
    length += piece.value.byteLength
    if (piece.value.includes(10) || length > maxFirstLine) break
  }
  const [first = ''] = Buffer.concat(begun).toString('utf8').trimStart().split('\n', 1)
  async function* bytes(): AsyncGenerator<Uint8Array> {
    yield* begun
    yield* { [Symbol.asyncIterator]: () => pieces }
  }
  return { endpoint: endpointIn(first), name: path === '-' ? 'input.jsonl' : basename(path), bytes: bytes() }
}

function endpointIn(line: string): string | undefined {
  try {
    const { url } = JSON.parse(line) as { url?: unknown }
    return typeof url === 'string' ? url : undefined
  } catch {
    return undefined
  }
}

/** Uploads the input of a batch without holding it in memory. Resolves with the id of the file. */
export async function uploadInput(client: Client, { name, bytes }: BatchInput, signal: AbortSignal): Promise<string> {
  if (/["\r\n]/.test(name)) throw usageFailure('The name of the file must not contain quotation marks or line breaks.')
  const form = formOf({ purpose: 'batch' }, { name, type: 'application/jsonl', content: () => bytes })
  // A program that writes to standard input may pause.
  const { id } = (await client.postForm('/std/v1/files', form, signal, 0)) as Api['File']
  return id
}
