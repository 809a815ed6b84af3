import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How often is looked, and so the least time that the server must have had nothing to do. */
const lookEveryMs = 10_000
/** A young generation that neither start nor load has made large is left alone. */
const largeYoungBytes = 4 << 20

export interface Activity {
  /** Requests that are being answered, and jobs that run. */
  running: number
  /** Requests that ever came. */
  taken: number
}

/** What is asked of V8; a test has its own. */
export interface Memory {
  youngBytes(): number
  collect(): void
}

/**
 * Gives memory back when there is nothing to do. V8 keeps the young generation as large as the start or a load made
 * it, and caches beside it; one thorough collection frees 10 MB of an idle server, which has a hundred. It takes a
 * tenth of a second, so it is made when nobody waits, and not again until a load has made the memory large.
 */
export function openQuiet({ activity, memory = v8 }: { activity: () => Activity; memory?: Memory }) {
  let seen = -1
  const timer = setInterval(look, lookEveryMs).unref()

  function look(): void {
    const { running, taken } = activity()
    if (running === 0 && taken === seen && memory.youngBytes() > largeYoungBytes) memory.collect()
    seen = taken
  }

  return { look, close: () => clearInterval(timer) }
}

type Collect = (how: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/**
 * V8's own function, which only a new context gets and only while the flag is set. Given to Node at its start instead,
 * the flag would make V8 reject the executable's code cache, and say so at every start.
 */
function openCollect(): Collect {
  setFlagsFromString('--expose-gc')
  try {
    return runInNewContext('gc') as Collect
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
}

let collect: Collect | undefined
const v8: Memory = {
  youngBytes: () => getHeapSpaceStatistics().find(space => space.space_name === 'new_space')?.space_size ?? 0,
  collect: () => (collect ??= openCollect())({ type: 'major', execution: 'sync', flavor: 'last-resort' }),
}
