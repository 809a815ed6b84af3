import { Failure } from '../failure.ts'

/** So much at a time leaves garbage that is worth collecting, when no body has been held for so long after it. */
const largeBodyBytes = 16 << 20
const quietMs = 5_000

/** What a body takes of memory, bytes. */
export interface BodySize {
  /** For as long as it is held. */
  kept: number
  /** Beside that while it is read. Large bodies are read one at a time, so only the largest of these counts. */
  whileRead: number
}

/**
 * Bounds what the bodies of all requests hold together, from before they are read until their answer. Large bodies
 * wait for slots and threads like small ones do, and a few hundred of them would be the memory of the machine. Calls
 * `collect` when it is quiet after much was held.
 */
export function openBodyMemory(maxBytes: number, collect: () => void = () => {}) {
  /** Those that have not been read and take more while they are. */
  const unread = new Set<BodySize>()
  let held = 0
  let most = 0
  let quiet: NodeJS.Timeout | undefined

  function reading(): number {
    let largest = 0
    for (const { whileRead } of unread) largest = Math.max(largest, whileRead)
    return largest
  }

  function changed(): void {
    most = Math.max(most, held)
    clearTimeout(quiet)
    if (most < largeBodyBytes || held > 0) return
    quiet = setTimeout(() => {
      most = 0
      collect()
    }, quietMs).unref()
  }

  return {
    /**
     * Counts a body. The function that it returns is called when the body has been read or is not needed any more: it
     * reduces what is kept to so many bytes, 0 by default. Throws Failure `no_capacity` when there is no room.
     */
    hold(size: BodySize): (keep?: number) => void {
      let bytes = size.kept
      if (held > 0 && held + bytes + Math.max(size.whileRead, reading()) > maxBytes)
        throw new Failure(
          'no_capacity',
          'The requests under way hold all the memory there is for them. Try again in a moment.',
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
