import { Failure } from '../../failure.ts'
import type { ReadRequest } from '../gguf-format.ts'
import { type HubFetch, hubUnreachable, type RetryRules, withRetries } from './requests.ts'

export interface RangeTools {
  ask: HubFetch
  retryRules: RetryRules
  signal: AbortSignal
}

/** Bytes of one request. A round trip costs more than a few megabytes, and headers have up to twenty. */
const pieceBytes = 4 << 20

/**
 * Drives a header parser with ranges of a file of `size` bytes on a server. Null if the server does not support ranges.
 * Rejects with the Failures of the parser, and for network errors.
 */
export async function readRanges<T>(
  parser: Generator<ReadRequest, T, Uint8Array>,
  { url, size }: { url: string; size: number },
  { ask, retryRules, signal }: RangeTools,
): Promise<T | null> {
  let step = parser.next()
  while (!step.done) {
    const { at, bytes } = step.value
    const end = Math.min(size, at + Math.max(bytes, pieceBytes))
    const piece = await withRetries(() => readRange(url, at, end, ask), { retryRules, signal })
    if (piece === null) return null
    step = parser.next(piece)
  }
  return step.value
}

/** Reads a small file as a whole. Null if the server does not support ranges. */
export const readSmallFile = (
  { url, size }: { url: string; size: number },
  { ask, retryRules, signal }: RangeTools,
): Promise<Uint8Array | null> => withRetries(() => readRange(url, 0, size, ask), { retryRules, signal })

async function readRange(url: string, at: number, end: number, ask: HubFetch): Promise<Uint8Array | null> {
  const { response, received, done } = await ask(url, { range: `bytes=${at}-${end - 1}` })
  try {
    if (response.status !== 206) {
      await response.body?.cancel()
      return null
    }
    const pieces: Uint8Array[] = []
    let length = 0
    for await (const piece of response.body ?? []) {
      received()
      length += piece.length
      // A server that sends more than the requested range is not read to the end.
      if (length > end - at) return null
      pieces.push(piece)
    }
    return Buffer.concat(pieces)
  } catch (thrown) {
    throw thrown instanceof Failure ? thrown : hubUnreachable(new URL(url), thrown)
  } finally {
    done()
  }
}
