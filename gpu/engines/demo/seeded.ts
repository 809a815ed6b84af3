import { createHash } from 'node:crypto'

/** A deterministic random number generator for [0, 1): the same seed words give the same numbers on every machine. */
export function openSeeded(...words: readonly (string | number)[]): () => number {
  const start = createHash('sha256').update(JSON.stringify(words)).digest()
  let block = start
  let at = 0
  return () => {
    if (at === block.length) {
      block = createHash('sha256').update(start).update(block).digest()
      at = 0
    }
    at += 4
    return block.readUInt32LE(at - 4) / 2 ** 32
  }
}
