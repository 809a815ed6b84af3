import type { LogPiece } from './launcher.ts'

/** Bytes of the end of an output that are kept. Whoever follows it reads in the same turn of the loop. */
const keptBytes = 256 << 10

/** The end of what a process prints, for readers that follow it from any byte. `printed`: bytes that came before. */
export function openLogBytes(printed = 0) {
  const pieces: LogPiece[] = []
  // The oldest of `pieces` that counts: to shift each would move thousands.
  let first = 0
  let kept = 0
  let total = printed
  let isOver = false
  let more = Promise.withResolvers<void>()

  const wake = () => {
    more.resolve()
    more = Promise.withResolvers<void>()
  }

  /** The piece with this byte, or the first later one. */
  function pieceAt(byte: number): LogPiece | undefined {
    let [low, high] = [first, pieces.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const { at, bytes } = pieces[middle]!
      if (at + bytes.length > byte) high = middle
      else low = middle + 1
    }
    return pieces[low]
  }

  return {
    push(bytes: Uint8Array): void {
      pieces.push({ at: total, bytes: Uint8Array.from(bytes) })
      total += bytes.length
      kept += bytes.length
      while (pieces.length - first > 1 && kept - pieces[first]!.bytes.length >= keptBytes)
        kept -= pieces[first++]!.bytes.length
      if (first > pieces.length / 2) {
        pieces.splice(0, first)
        first = 0
      }
      wake()
    },
    end(): void {
      isOver = true
      wake()
    },
    async *read(from: number, signal: AbortSignal): AsyncIterable<LogPiece> {
      signal.addEventListener('abort', wake)
      try {
        for (let next = from; !signal.aborted; ) {
          const piece = pieceAt(next)
          if (piece) {
            const skipped = Math.max(0, next - piece.at)
            next = piece.at + piece.bytes.length
            yield { at: piece.at + skipped, bytes: piece.bytes.subarray(skipped) }
          } else if (isOver) return
          else await more.promise
        }
      } finally {
        signal.removeEventListener('abort', wake)
      }
    },
  }
}

export type LogBytes = ReturnType<typeof openLogBytes>
