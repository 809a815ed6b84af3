import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { z } from 'zod'
import { findServer, serverUnreachable } from '../client/find-server.ts'
import { readText, send } from '../client/http.ts'
import { serverRefusal } from '../client/refusal.ts'
import { usageFailure } from '../terminal/exit-codes.ts'

const UploadedFile = z.looseObject({ id: z.string() })

/** The longest first line that is searched for the endpoint, bytes. */
const maxFirstLine = 32 << 20

/** The input of a batch: a file, or standard input for `-`. */
export interface BatchInput {
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
export async function uploadInput(dataDir: string, { name, bytes }: BatchInput, signal: AbortSignal): Promise<string> {
  if (/["\r\n]/.test(name)) throw usageFailure('The name of the file must not contain quotation marks or line breaks.')
  const server = findServer(dataDir)
  const { url, token, certificate } = server
  const boundary = `infer-${randomUUID()}`
  async function* form(): AsyncGenerator<Uint8Array> {
    const part = (header: string) => Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; ${header}\r\n`)
    yield part('name="purpose"')
    yield Buffer.from('\r\nbatch\r\n')
    yield part(`name="file"; filename="${name}"`)
    yield Buffer.from('content-type: application/jsonl\r\n\r\n')
    yield* bytes
    yield Buffer.from(`\r\n--${boundary}--\r\n`)
  }
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
  const body = Readable.from(form())
  const request = { method: 'POST', url: `${url}/v1/files`, token, body, headers, signal, certificate }
  const message = await send(request).catch((cause: unknown) => {
    signal.throwIfAborted()
    throw serverUnreachable(server, dataDir, cause)
  })
  const status = message.statusCode ?? 0
  const text = await readText(message, 1 << 20)
  if (status !== 200) throw serverRefusal(url, text, { status, headers: message.headers })
  return UploadedFile.parse(JSON.parse(text)).id
}

/** Downloads a file of the files API in pieces. */
export async function* batchInputBytes(dataDir: string, id: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const server = findServer(dataDir)
  const { url, token, certificate } = server
  const request = { method: 'GET', url: `${url}/v1/files/${id}/content`, token, signal, certificate }
  const message = await send(request).catch((cause: unknown) => {
    signal.throwIfAborted()
    throw serverUnreachable(server, dataDir, cause)
  })
  const status = message.statusCode ?? 0
  if (status !== 200) throw serverRefusal(url, await readText(message, 1 << 20), { status, headers: message.headers })
  yield* message as AsyncIterable<Uint8Array>
}
