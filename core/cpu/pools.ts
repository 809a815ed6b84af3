import type { Transferable } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import { workerPath } from '../assets.ts'
import { Failure } from '../failure.ts'
import type { WorkRequest } from './thread-work.ts'

/** The kinds of work that have threads of their own. */
export type PoolName = 'requests' | 'bodies' | 'images' | 'results' | 'sounds' | 'encoders'

/** Arguments of `openPools`. */
export interface PoolsOptions {
  /** Threads for requests and answers. */
  threads: number
  /** How many calls may wait for each pool. */
  maxQueue: number
}

/** How many lookups in large results may wait: a workflow of thousands of nodes may ask for all of them at once. */
const maxLookups = 10_000

/** The memory that a thread may use; one that needs more ends, and its work with it. */
const within = (megabytes: number) => ({ resourceLimits: { maxOldGenerationSizeMb: megabytes } })

/**
 * Opens the pools of threads. Each kind of work has a pool of its own, so that none waits behind another. A pool, and
 * the package behind it, is loaded with its first call: most servers never make one.
 */
export function openPools({ threads, maxQueue }: PoolsOptions) {
  const shared = { filename: workerPath('cpu-worker'), minThreads: 0, maxThreads: 1, idleTimeout: 30_000, maxQueue }
  const settings = {
    requests: { ...shared, minThreads: 1, maxThreads: threads, ...within(512) },
    // One at a time bounds the memory, and soon after the last one the thread ends, which gives all of it back.
    bodies: { ...shared, idleTimeout: 3_000, ...within(512) },
    // One is enough: the library computes in threads of its own, and two images at a time bound its memory.
    images: { ...shared, concurrentTasksPerWorker: 2, ...within(256) },
    // One is enough, because it keeps the result that it read last.
    results: { ...shared, maxQueue: maxLookups, ...within(1024) },
    // An hour of audio takes seconds, and one at a time bounds the memory.
    sounds: { ...shared, ...within(256) },
    // Speech is encoded while it is made, many at once, and each takes the thread a thousandth of its time.
    encoders: { ...shared, concurrentTasksPerWorker: 64, ...within(256) },
  } satisfies Record<PoolName, object>
  const pools: Partial<Record<PoolName, Promise<Piscina>>> = {}

  async function open(kind: PoolName): Promise<Piscina> {
    const { Piscina } = await import('piscina')
    return new Piscina(settings[kind])
  }

  return {
    /**
     * Runs a call when a thread is free. What is transferred becomes unusable here. Throws Failure `no_capacity` where
     * too many wait, or the signal's reason: work that is running by then ends with its thread.
     */
    async run(
      kind: PoolName,
      request: WorkRequest,
      transferList: Transferable[],
      signal?: AbortSignal,
    ): Promise<unknown> {
      const pool = await (pools[kind] ??= open(kind))
      if (pool.queueSize >= settings[kind].maxQueue)
        throw new Failure(
          'no_capacity',
          'Too many large requests are being worked on at once. Try again in a moment.',
          {
            retryAfterMs: 1_000,
          },
        )
      if (!signal) return pool.run(request, { transferList })
      try {
        return await pool.run(request, { transferList, signal })
      } catch (thrown) {
        throw signal.aborted ? signal.reason : thrown
      }
    },
    async close(): Promise<void> {
      await Promise.all(Object.values(pools).map(async pool => (await pool).destroy()))
    },
  }
}
