import { once } from 'node:events'
import type { Call } from '../call.ts'
import type { WatchedStream } from '../std/streams.ts'
import type { Range } from './range.ts'

const [smallest, largest] = [16 << 10, 256 << 10]
/** What the readers of files may hold twice over, roughly: the more there are, the less each is given at once. */
const together = 16 << 20

export const chunkBytes = (readers: number): number =>
  Math.max(smallest, Math.min(largest, Math.floor(together / Math.max(1, readers))))

/** What is read in parts: an open file, or a large result of a store. */
export interface PartReader {
  read(into: { buffer: Buffer; position: number }): Promise<{ bytesRead: number }>
}

/**
 * A part of a file, piece by piece, none longer than `most` bytes; the disk works while the reader reads. Throws where
 * it is shorter than that.
 */
export async function* piecesOf(
  { streams }: Call,
  file: PartReader,
  { first, last }: Range,
  most: number = largest,
): AsyncGenerator<Uint8Array> {
  function piece(position: number): Promise<Uint8Array> {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes(streams.count), most, last - position + 1))
    const read = file.read({ buffer, position }).then(({ bytesRead }) => buffer.subarray(0, bytesRead))
    // When the reader leaves meanwhile, nobody asks what became of it.
    read.catch(() => {})
    return read
  }
  for (let at = first, next = first <= last ? piece(first) : undefined; next; ) {
    const bytes = await next
    if (bytes.length === 0) throw new Error(`A file ends at byte ${at}, and byte ${last} of it is to be sent.`)
    at += bytes.length
    next = at <= last ? piece(at) : undefined
    yield bytes
  }
}

/** Three bytes are four characters, so what is encoded is no longer than any other piece. */
const encodable = (largest / 4) * 3

/** A whole file of so many bytes in base64, likewise. */
export async function* base64PiecesOf(call: Call, file: PartReader, bytes: number): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array()
  for await (const read of piecesOf(call, file, { first: 0, last: bytes - 1 }, encodable)) {
    const piece = Buffer.concat([rest, read])
    // Only the end of all may be no multiple of three: it is filled up.
    const whole = piece.length - (piece.length % 3)
    rest = piece.subarray(whole)
    yield Buffer.from(piece.subarray(0, whole).toString('base64'), 'latin1')
  }
  if (rest.length > 0) yield Buffer.from(Buffer.from(rest).toString('base64'), 'latin1')
}

/**
 * Writes pieces after the head, no faster than they are read: what a reader has not taken is not in memory. One that
 * takes nothing for the write deadline is cut. Resolves when the response is over.
 */
export async function sendPieces({ res, streams }: Call, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const rest: WatchedStream = {
    setIndex: -1,
    blockedSince: undefined,
    wroteAt: performance.now(),
    ping() {},
    cut: () => void res.destroy(),
    interrupt: () => void res.destroy(),
  }
  const over = new AbortController()
  res.once('close', () => over.abort())
  if (res.destroyed) over.abort()
  streams.add(rest)
  try {
    for await (const bytes of pieces) {
      if (over.signal.aborted) return
      if (res.write(bytes)) continue
      rest.blockedSince = performance.now()
      await once(res, 'drain', { signal: over.signal }).catch(() => {})
      rest.blockedSince = undefined
    }
    if (over.signal.aborted) return
    rest.blockedSince = performance.now()
    const closed = once(res, 'close')
    res.end()
    await closed
  } catch (thrown) {
    // The head is out, so all that is left to say is that this is not the end.
    res.destroy()
    throw thrown
  } finally {
    streams.remove(rest)
  }
}
