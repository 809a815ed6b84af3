/** Samples that were not committed yet. Positions count from the first sample of the session. */
export function openAudioBuffer() {
  let held = new Int16Array(0)
  let start = 0
  let length = 0

  return {
    /** Position of the first sample that is held. */
    get start(): number {
      return start
    },
    /** Position after the last one. */
    get end(): number {
      return start + length
    },
    append(samples: Int16Array): void {
      if (length + samples.length > held.length) {
        const larger = new Int16Array(Math.max(16_000, 2 * (length + samples.length)))
        larger.set(held.subarray(0, length))
        held = larger
      }
      held.set(samples, length)
      length += samples.length
    },
    /** Returns a copy of the samples from one position to another. */
    slice: (from: number, to: number): Int16Array =>
      held.slice(Math.max(0, from - start), Math.min(length, to - start)),
    /** Drops the samples before a position. */
    dropBefore(position: number): void {
      const count = Math.max(0, Math.min(length, position - start))
      if (count === 0) return
      held.copyWithin(0, count, length)
      start += count
      length -= count
      if (length === 0) held = new Int16Array(0)
    },
  }
}
