import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { type: 'major' | 'minor'; execution: 'async' | 'sync' }) => unknown
let collect: Collect | undefined

function collector(): Collect {
  if (!collect) {
    // `gc` exists only in contexts that are created while the flag is set.
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as Collect
    setFlagsFromString('--no-expose-gc')
  }
  return collect
}

/**
 * Makes V8 collect all garbage soon. V8 counts a buffer of many megabytes as a few bytes, so an idle process would keep
 * it for minutes. A collection stops the thread for some tens of milliseconds: call this only when little work is running.
 */
export const collectGarbage = (): void => void collector()({ type: 'major', execution: 'async' })

/** Received bytes of large bodies since the last collection of their chunks. */
let received = 0
/** Collecting takes a millisecond, receiving this many bytes about ten. */
const receivedBetween = 8 << 20

/**
 * Counts a chunk of a large body, which is garbage as soon as it has been copied or dropped. V8 would let many of them
 * accumulate, and what `malloc` has taken from the system for small blocks it keeps for ever: 130 MB.
 */
export function countChunk(bytes: number): void {
  received += bytes
  if (received < receivedBetween) return
  received = 0
  collector()({ type: 'minor', execution: 'sync' })
}
