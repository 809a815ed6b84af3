import { Failure } from '../../failure.ts'
import { type GgufContents, parseGguf } from '../gguf-format.ts'
import { type GgufHeader, ggufHeader } from '../gguf-header.ts'
import { type HubFetch, type RetryRules, unreachable, withRetries } from './requests.ts'

/** Bytes of one request. A round trip costs more than a few megabytes, and headers have up to twenty. */
const pieceBytes = 4 << 20

/**
 * Reads the header of a GGUF model on a server, from its files in order. Null if the server does not support ranges.
 * Rejects with Failure like `readGgufHeader`, and for network errors.
 */
export async function readRemoteHeader(
  files: readonly { name: string; url: string; size: number }[],
  { ask, retryRules, signal }: { ask: HubFetch; retryRules: RetryRules; signal: AbortSignal },
): Promise<GgufHeader | null> {
  const contents: GgufContents[] = []
  for (const { name, url, size } of files) {
    const parser = parseGguf(name, size)
    let step = parser.next()
    while (!step.done) {
      const { at, bytes } = step.value
      const end = Math.min(size, at + Math.max(bytes, pieceBytes))
      const piece = await withRetries(() => readPiece(url, at, end, ask), { retryRules, signal })
      if (piece === null) return null
      step = parser.next(piece)
    }
    contents.push(step.value)
  }
  return ggufHeader(files[0]!.name, contents)
}

async function readPiece(url: string, at: number, end: number, ask: HubFetch): Promise<Uint8Array | null> {
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
    throw thrown instanceof Failure ? thrown : unreachable(new URL(url), thrown)
  } finally {
    done()
  }
}
