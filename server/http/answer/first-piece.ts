/**
 * Resolves with all pieces once the first is there. What fails before that is answered with a status, or tried again.
 * `ended` is called when the pieces have been read or reading stops.
 */
export async function withFirstPiece<Piece extends Uint8Array>(
  source: AsyncIterable<Piece>,
  ended: () => void = () => {},
): Promise<AsyncIterable<Piece>> {
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
