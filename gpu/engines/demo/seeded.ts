import { createHash } from 'node:crypto'

/** An endless row of numbers from 0 up to 1 that follows from the words alone, the same on every machine. */
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
