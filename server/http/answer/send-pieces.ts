import { once } from 'node:events'
import type { ClientExchange } from '../request/exchange.ts'
import type { WatchedStream } from '../streams/streams.ts'

/**
 * Resolves with all pieces once the first is there. What fails before that is answered with a status, or tried again.
 * `ended` is called when the pieces have been read or reading stops.
 */
export async function withFirstPiece<Piece>(source: AsyncIterable<Piece>, ended: () => void = () => {}) {
  const pieces = source[Symbol.asyncIterator]()
  const first = await pieces.next()
  return (async function* () {
    try {
      if (first.done) return
      yield first.value
      for (let next = await pieces.next(); !next.done; next = await pieces.next()) yield next.value
    } finally {
      await pieces.return?.()
      ended()
    }
  })()
}

const [minPiece, maxPiece] = [16 << 10, 256 << 10]
/** Bytes. Half of what all readers of files may have in memory, roughly: more readers get smaller pieces. */
const sharedBytes = 16 << 20

export const chunkBytes = (readers: number): number =>
  Math.max(minPiece, Math.min(maxPiece, Math.floor(sharedBytes / Math.max(1, readers))))

/** A source that is read in parts: an open file, or a large result in the store. */
export interface PartReader {
  read(into: { buffer: Buffer; position: number }): Promise<{ bytesRead: number }>
}

/** A part of a file: its first and its last byte, both included. */
export interface Range {
  first: number
  last: number
}

/**
 * Yields a range of a file in pieces of at most `maxBytes` bytes. Reads the next piece while the client reads the
 * last one.
 * Throws if the file is shorter than the range.
 */
export async function* piecesOf(
  { streams }: ClientExchange,
  file: PartReader,
  { first, last }: Range,
  maxBytes: number = maxPiece,
): AsyncGenerator<Uint8Array> {
  function piece(position: number): Promise<Uint8Array> {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes(streams.count), maxBytes, last - position + 1))
    const read = file.read({ buffer, position }).then(({ bytesRead }) => buffer.subarray(0, bytesRead))
    // Nobody awaits this read if the reader disconnects meanwhile.
    read.catch(() => {})
    return read
  }
  for (let at = first, next = first <= last ? piece(first) : undefined; next; ) {
    const bytes = await next
    if (bytes.length === 0) throw new Error(`A file ends at byte ${at}, before byte ${last}, which was requested.`)
    at += bytes.length
    next = at <= last ? piece(at) : undefined
    yield bytes
  }
}

/** Base64 turns three bytes into four characters, so an encoded piece is no longer than other pieces. */
const maxEncodable = (maxPiece / 4) * 3

/** Yields a whole file of `bytes` bytes in base64, in pieces. */
export async function* base64PiecesOf(exchange: ClientExchange, file: PartReader, bytes: number) {
  let rest: Uint8Array = new Uint8Array()
  for await (const read of piecesOf(exchange, file, { first: 0, last: bytes - 1 }, maxEncodable)) {
    const piece = Buffer.concat([rest, read])
    // Only the end of the file may be padded, so pieces are multiples of three bytes.
    const whole = piece.length - (piece.length % 3)
    rest = piece.subarray(whole)
    yield Buffer.from(piece.subarray(0, whole).toString('base64'), 'latin1')
  }
  if (rest.length > 0) yield Buffer.from(Buffer.from(rest).toString('base64'), 'latin1')
}

/**
 * Writes pieces after the head, no faster than the client reads, so that unread pieces are not in memory. A client that
 * reads nothing until the write deadline is cut. Resolves when the response has ended.
 */
export async function sendPieces({ res, streams }: ClientExchange, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const watched: WatchedStream = {
    setIndex: -1,
    blockedSince: undefined,
    wroteAt: performance.now(),
    ping() {},
    cut: () => void res.destroy(),
    interrupt: () => void res.destroy(),
  }
  const closing = new AbortController()
  res.once('close', () => closing.abort())
  if (res.destroyed) closing.abort()
  streams.add(watched)
  try {
    for await (const bytes of pieces) {
      if (closing.signal.aborted) return
      if (res.write(bytes)) continue
      watched.blockedSince = performance.now()
      await once(res, 'drain', { signal: closing.signal }).catch(() => {})
      watched.blockedSince = undefined
    }
    if (closing.signal.aborted) return
    watched.blockedSince = performance.now()
    const closed = once(res, 'close')
    res.end()
    await closed
  } catch (thrown) {
    // The head was sent, so only cutting the connection shows that the answer is incomplete.
    res.destroy()
    throw thrown
  } finally {
    streams.remove(watched)
  }
}

async function* bytesOf(parts: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  for await (const part of parts) if (part !== '') yield Buffer.from(part)
}

/**
 * Sends a CSV file part by part. Throws what the first part throws; a later failure cuts the connection, so that half a file is
 * no success.
 */
export async function sendCsv(exchange: ClientExchange, parts: AsyncIterable<string>, name: string): Promise<void> {
  const { req, res } = exchange
  const pieces = await withFirstPiece(bytesOf(parts))
  if (res.destroyed) return
  const disposition = ['content-disposition', `attachment; filename="${name}"`]
  exchange.head(200, 'text/csv; charset=utf-8; header=present', disposition)
  if (req.method === 'HEAD') res.end()
  else await sendPieces(exchange, pieces)
}
