import { setImmediate as nextIteration } from 'node:timers/promises'

/** Bytes that are encoded at once: half a millisecond. A multiple of 3, so that only the last piece is padded. */
const pieceBytes = 3 << 18

/** Resolves with bytes as base64 in ASCII. Yields to the event loop after each piece: 25 MB at once would block it 20 ms. */
export async function base64InPieces(bytes: Buffer): Promise<Buffer> {
  const encoded = Buffer.allocUnsafe(Math.ceil(bytes.length / 3) * 4)
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    if (from > 0) await nextIteration()
    encoded.write(bytes.toString('base64', from, from + pieceBytes), (from / 3) * 4, 'latin1')
  }
  return encoded
}
