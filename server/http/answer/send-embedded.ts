import type { ClientExchange } from '../request/exchange.ts'
import type { Embedded } from '../request/json-text.ts'
import { chunkBytes, piecesOf, sendPieces } from './send-pieces.ts'

interface EmbeddedPosition {
  source: Embedded['source']
  /** Position of the placeholder in the text. */
  from: number
  to: number
  /** Bytes to omit at each end: the braces of an object of which only the members are inserted. */
  trim: number
}

/** The content type, and further headers, flat. */
export type Head = readonly [contentType: string, headers: readonly string[]]

/** Finds all placeholders in the text, in one pass. */
function positionsOf(text: string, embedded: readonly Embedded[]) {
  const byName = new Map(embedded.map(one => [one.name, one]))
  const positions: EmbeddedPosition[] = []
  for (const { 0: shown, 1: name, 2: members, index } of text.matchAll(/"(embedded [0-9a-f-]{36})"(:0)?/g)) {
    const one = byName.get(name!)
    if (one) positions.push({ source: one.source, from: index, to: index + shown.length, trim: members ? 1 : 0 })
  }
  return positions
}

/**
 * Resolves with the sum of the bytes; undefined if not known yet. Throws before the head is sent if a result no longer
 * exists.
 */
async function sizeOf(positions: readonly EmbeddedPosition[]) {
  let sum: number | undefined = 0
  for (const { source } of positions) {
    if (typeof source === 'function') sum = undefined
    else {
      await source.check()
      if (sum !== undefined) sum += source.bytes
    }
  }
  return sum
}

/**
 * Writes JSON text, or events with JSON text, with the embedded parts, no faster than the client reads. Resolves when
 * the response has ended.
 */
export async function sendEmbedded(
  exchange: ClientExchange,
  status: number,
  text: string,
  embedded: readonly Embedded[],
  [contentType, headers]: Head = ['application/json', []],
): Promise<void> {
  const positions = positionsOf(text, embedded)
  const large = await sizeOf(positions)
  const { res } = exchange
  if (res.headersSent || res.destroyed) return
  const ends = [...positions.map(({ from }) => from), text.length]
  const texts = ends.map((end, at) => Buffer.from(text.slice(positions[at - 1]?.to ?? 0, end)))
  const small = texts.reduce((sum, { byteLength }) => sum + byteLength, 0)
  const trimmed = positions.reduce((sum, { trim }) => sum + 2 * trim, 0)
  const length = large === undefined ? [] : ['content-length', String(small + large - trimmed)]
  exchange.head(status, contentType, [...headers, ...length])
  if (exchange.req.method === 'HEAD') return void res.end()

  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (const [at, text] of texts.entries()) {
      yield text
      const position = positions[at]
      if (position) yield* bytesOf(position, exchange)
    }
  }
  await sendPieces(exchange, pieces())
}

async function* bytesOf({ source, trim }: EmbeddedPosition, exchange: ClientExchange) {
  if (typeof source === 'function') {
    const made = source()
    if (Symbol.asyncIterator in made) return yield* made
    const bytes = await made
    for (let at = trim; at < bytes.byteLength - trim; ) {
      const piece = bytes.subarray(at, Math.min(at + chunkBytes(exchange.streams.count), bytes.byteLength - trim))
      at += piece.byteLength
      yield piece
    }
    return
  }
  await using result = await source.open()
  yield* piecesOf(exchange, result, { first: trim, last: source.bytes - trim - 1 })
}
