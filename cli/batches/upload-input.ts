import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Readable } from 'node:stream'
import type { Api, Client } from '../client/client.ts'
import { formOf } from '../client/form.ts'
import { usageFailure } from '../terminal/exit-codes.ts'

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
export async function uploadInput(client: Client, { name, bytes }: BatchInput, signal: AbortSignal): Promise<string> {
  if (/["\r\n]/.test(name)) throw usageFailure('The name of the file must not contain quotation marks or line breaks.')
  const form = formOf({ purpose: 'batch' }, { name, type: 'application/jsonl', content: () => bytes })
  // A program that writes to standard input may pause.
  const { id } = (await client.postForm('/std/v1/files', form, signal, 0)) as Api['File']
  return id
}
