import { Failure } from '../failure.ts'

/** From this many bytes on, garbage collection pays, once no body has been held for `quietMs`. */
const largeBodyBytes = 16 << 20
const quietMs = 5_000

/** How much memory a body needs, bytes. */
export interface BodySize {
  /** While it is held. */
  kept: number
  /** Additionally while it is read. Large bodies are read one at a time, so only the largest of these counts. */
  whileRead: number
}

/**
 * Limits the memory of all request bodies together, from before they are read until they are answered. Large bodies
 * wait for slots and threads like small ones, and a few hundred of them would fill the machine's memory. Calls
 * `collect` when idle after large bodies were held.
 */
export function openBodyMemory(maxBytes: number, collect: () => void = () => {}) {
  /** Bodies that have not been read yet and need more memory while they are. */
  const unread = new Set<BodySize>()
  let held = 0
  let peak = 0
  let quiet: NodeJS.Timeout | undefined

  function reading(): number {
    let largest = 0
    for (const { whileRead } of unread) largest = Math.max(largest, whileRead)
    return largest
  }

  function changed(): void {
    peak = Math.max(peak, held)
    clearTimeout(quiet)
    if (peak < largeBodyBytes || held > 0) return
    quiet = setTimeout(() => {
      peak = 0
      collect()
    }, quietMs).unref()
  }

  return {
    /**
     * Reserves memory for a body. Call the returned function when the body has been read or is no longer needed: it
     * reduces the reservation to `keep` bytes, 0 by default. Throws Failure `no_capacity` if there is not enough
     * memory.
     */
    hold(size: BodySize): (keep?: number) => void {
      let bytes = size.kept
      if (held > 0 && held + bytes + Math.max(size.whileRead, reading()) > maxBytes)
        throw new Failure(
          'no_capacity',
          'Current requests use all the memory that is reserved for request bodies. Retry in a second.',
          { retryAfterMs: 1_000 },
        )
      held += bytes
      if (size.whileRead > 0) unread.add(size)
      changed()
      return (keep = 0) => {
        unread.delete(size)
        const kept = Math.min(bytes, keep)
        if (kept === bytes) return
        held -= bytes - kept
        bytes = kept
        changed()
      }
    },
  }
}
export type BodyMemory = ReturnType<typeof openBodyMemory>
