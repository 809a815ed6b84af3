import { randomUUID } from 'node:crypto'
import type { LargeResult } from '../core/store/store.ts'
import type { Call } from './call.ts'
import { chunkBytes, piecesOf, sendPieces } from './files/send-pieces.ts'

/**
 * A large piece of JSON in an answer: it stands there as a name that nobody can have sent, and its bytes are poured in
 * its place when the answer is sent, so that the loop never has them in hand at once.
 */
export class Embedded {
  readonly source: LargeResult | (() => Promise<Uint8Array> | AsyncIterable<Uint8Array>)
  readonly name = `embedded ${randomUUID()}`

  /**
   * A large result, or what makes the bytes when their turn has come: whole, or in pieces, which are sent as they are and can be
   * no members.
   */
  constructor(source: Embedded['source']) {
    this.source = source
  }

  toJSON(): string {
    return this.name
  }

  /** The members of a large object among those of another one; what comes later counts. */
  asMembers(): object {
    return { [this.name]: 0 }
  }
}

interface EmbeddedPosition {
  source: Embedded['source']
  /** Where it stands in the text. */
  from: number
  to: number
  /** Bytes at each end that do not belong there: the braces of an object whose members are meant. */
  trim: number
}

/** The content type, and further headers, flat. */
export type Head = readonly [contentType: string, headers: readonly string[]]

/** Where in the text what is embedded stands, in one go however much that is. */
function positionsOf(text: string, embedded: readonly Embedded[]): EmbeddedPosition[] {
  const byName = new Map(embedded.map(one => [one.name, one]))
  const positions: EmbeddedPosition[] = []
  for (const { 0: shown, 1: name, 2: members, index } of text.matchAll(/"(embedded [0-9a-f-]{36})"(:0)?/g)) {
    const one = byName.get(name!)
    if (one) positions.push({ source: one.source, from: index, to: index + shown.length, trim: members ? 1 : 0 })
  }
  return positions
}

/** A large result as text, for what is known to be small enough after all. Throws Failure `output_expired`. */
export const readResult = (result: string | LargeResult): Promise<string> | string =>
  typeof result === 'string' ? result : result.text()

/** Refuses before the head is out what is not there any more. Resolves with the bytes of all; undefined: not known yet. */
async function sizeOf(positions: readonly EmbeddedPosition[]): Promise<number | undefined> {
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
 * Writes JSON text, or events of it, with what is embedded in it, no faster than it is read. Resolves when the response
 * is over.
 */
export async function sendEmbedded(
  call: Call,
  status: number,
  text: string,
  embedded: readonly Embedded[],
  [contentType, headers]: Head = ['application/json', []],
): Promise<void> {
  const positions = positionsOf(text, embedded)
  const large = await sizeOf(positions)
  const { res } = call
  if (res.headersSent || res.destroyed) return
  const ends = [...positions.map(({ from }) => from), text.length]
  const texts = ends.map((end, at) => Buffer.from(text.slice(positions[at - 1]?.to ?? 0, end)))
  const small = texts.reduce((sum, { byteLength }) => sum + byteLength, 0)
  const trimmed = positions.reduce((sum, { trim }) => sum + 2 * trim, 0)
  const length = large === undefined ? [] : ['content-length', String(small + large - trimmed)]
  call.head(status, contentType, [...headers, ...length])
  if (call.req.method === 'HEAD') return void res.end()

  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (const [at, before] of texts.entries()) {
      yield before
      const place = positions[at]
      if (place) yield* bytesOf(place, call)
    }
  }
  await sendPieces(call, pieces())
}

async function* bytesOf({ source, trim }: EmbeddedPosition, call: Call): AsyncGenerator<Uint8Array> {
  if (typeof source === 'function') {
    const made = source()
    if (Symbol.asyncIterator in made) return yield* made
    const bytes = await made
    for (let at = trim; at < bytes.byteLength - trim; ) {
      const piece = bytes.subarray(at, Math.min(at + chunkBytes(call.streams.count), bytes.byteLength - trim))
      at += piece.byteLength
      yield piece
    }
    return
  }
  await using result = await source.open()
  yield* piecesOf(call, result, { first: trim, last: source.bytes - trim - 1 })
}
