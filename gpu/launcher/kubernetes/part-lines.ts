const newLine = 10
/** Bytes of a line after which it is passed on without its end. */
const longestLine = 16 << 10

/**
 * Passes on what a part of an engine prints in whole lines, so that those of several parts can be in one log; lines of the parts
 * after the first begin with `rank 1: `.
 */
export function partLines(rank: number, pass: (lines: Buffer) => void) {
  const prefix = Buffer.from(rank === 0 ? '' : `rank ${rank}: `)
  let rest = Buffer.alloc(0)

  function* linesOf(text: Buffer): Generator<Buffer> {
    for (let from = 0; from < text.length; ) {
      const at = text.indexOf(newLine, from)
      const end = at < 0 ? text.length : at + 1
      yield prefix
      yield text.subarray(from, end)
      if (at < 0) yield Buffer.of(newLine)
      from = end
    }
  }

  return {
    push(chunk: Uint8Array): void {
      const text = Buffer.concat([rest, chunk])
      const last = text.lastIndexOf(newLine) + 1
      const end = text.length - last > longestLine ? text.length : last
      rest = text.subarray(end)
      if (end > 0) pass(Buffer.concat([...linesOf(text.subarray(0, end))]))
    },
    /** Passes on what has no end of a line. */
    end(): void {
      if (rest.length > 0) pass(Buffer.concat([...linesOf(rest)]))
      rest = Buffer.alloc(0)
    },
  }
}
