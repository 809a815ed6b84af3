import type { Transferable } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import { workerPath } from '../assets.ts'
import { Failure } from '../failure.ts'
import type { ThreadRequest } from './thread-work.ts'

/** The kinds of work, each with its own threads. */
export type PoolName =
  | 'requests'
  | 'bodies'
  | 'images'
  | 'results'
  | 'audio'
  | 'encoders'
  | 'batches'
  | 'steps'
  | 'lists'

/** Arguments of `openPools`. */
export interface PoolsOptions {
  /** Threads for requests and answers. */
  threads: number
  /** How many calls may wait for each pool. */
  maxQueue: number
}

/** How many lookups in large results may wait: a workflow of thousands of nodes may need all of them at once. */
const maxLookups = 10_000

/** Limits the memory of a thread. A thread that needs more ends, and its work fails. */
const within = (megabytes: number) => ({ resourceLimits: { maxOldGenerationSizeMb: megabytes } })

/**
 * Opens the thread pools. Each kind of work has its own pool, so that none waits behind another. The first call opens its
 * pool and loads piscina: most servers never need either.
 */
export function openPools({ threads, maxQueue }: PoolsOptions) {
  const shared = { filename: workerPath('cpu-worker'), minThreads: 0, maxThreads: 1, idleTimeout: 30_000, maxQueue }
  const settings = {
    requests: { ...shared, minThreads: 1, maxThreads: threads, ...within(512) },
    // One at a time limits the memory. Soon after the last one the thread ends, which frees all of it.
    bodies: { ...shared, idleTimeout: 3_000, ...within(512) },
    // One is enough: the library computes in its own threads, and two images at a time limit its memory.
    images: { ...shared, concurrentTasksPerWorker: 2, ...within(256) },
    // One is enough, because it caches the result that it read last.
    results: { ...shared, maxQueue: maxLookups, ...within(1024) },
    // An hour of audio takes seconds, and one at a time limits the memory.
    audio: { ...shared, ...within(256) },
    // Long lines of the input files of batches. The thread ends soon after.
    batches: { ...shared, idleTimeout: 1_000, ...within(128) },
    // Pages of lists of a Kubernetes cluster, one at a time.
    lists: { ...shared, ...within(256) },
    // What callers write runs here, such as patterns: a thread is ended when it takes too long.
    steps: { ...shared, maxThreads: threads, ...within(1024) },
    // Speech is encoded while the engine generates it. Each stream takes a thousandth of the thread's time.
    encoders: { ...shared, concurrentTasksPerWorker: 64, ...within(256) },
  } satisfies Record<PoolName, object>
  const pools: Partial<Record<PoolName, Promise<Piscina>>> = {}

  async function open(kind: PoolName): Promise<Piscina> {
    const { Piscina } = await import('piscina')
    // One more than calls, for `wake`.
    return new Piscina({ ...settings[kind], maxQueue: settings[kind].maxQueue + 1 })
  }

  /** Starts a thread for the calls that wait: where one has ended with its work, only a further call does. */
  function wake(pool: Piscina): void {
    if (pool.queueSize > 0) pool.run({ work: 'nothing', request: [] } satisfies ThreadRequest).catch(() => {})
  }

  return {
    /**
     * Runs a call when a thread is free. Transferred objects become unusable in this thread. Rejects with Failure
     * `no_capacity` if too many calls wait, or with the signal's reason: work that runs then ends with its thread.
     */
    async run(
      kind: PoolName,
      request: ThreadRequest,
      transferList: Transferable[],
      signal?: AbortSignal,
    ): Promise<unknown> {
      const pool = await (pools[kind] ??= open(kind))
      if (pool.queueSize >= settings[kind].maxQueue)
        throw new Failure('no_capacity', 'Too many large requests are being processed. Try again in a few seconds.', {
          retryAfterMs: 1_000,
        })
      try {
        return await pool.run(request, signal ? { transferList, signal } : { transferList })
      } catch (thrown) {
        wake(pool)
        throw signal?.aborted ? signal.reason : thrown
      }
    },
    async close(): Promise<void> {
      await Promise.all(Object.values(pools).map(async pool => (await pool).destroy()))
    },
  }
}
