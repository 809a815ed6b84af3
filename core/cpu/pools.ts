import type { Transferable } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import { workerPath } from '../assets.ts'
import { Failure } from '../failure.ts'
import type { CpuRequest } from './worker.ts'

export interface PoolsWish {
  /** For requests and answers. */
  threads: number
  /** How many of a kind may wait. */
  maxQueue: number
}

/** Looks into large results that may wait: an execution of thousands of nodes may ask for all of them at once. */
const mostLooks = 10_000

/** At most so much memory for what a thread makes; one that needs more ends, and its work with it. */
const within = (megabytes: number) => ({ resourceLimits: { maxOldGenerationSizeMb: megabytes } })

/**
 * Threads, each kind of work in a pool of its own, so that none waits behind another. A pool is there from its first
 * work on, and so is the package: most servers never have any.
 */
export function openPools({ threads, maxQueue }: PoolsWish) {
  const shared = { filename: workerPath('cpu-worker'), minThreads: 0, maxThreads: 1, idleTimeout: 30_000, maxQueue }
  const kinds = {
    requests: { ...shared, minThreads: 1, maxThreads: threads, ...within(512) },
    // One is enough: the library computes in threads of its own, and two pictures at a time bound its memory.
    images: { ...shared, concurrentTasksPerWorker: 2, ...within(256) },
    // One is enough, because it remembers the last result that it has read.
    results: { ...shared, maxQueue: mostLooks, ...within(1024) },
    // An hour of sound takes seconds, and one at a time bounds the memory.
    sounds: { ...shared, ...within(256) },
    // Speech is encoded while it is made, many at once, and each takes the thread a thousandth of its time.
    encoders: { ...shared, concurrentTasksPerWorker: 64, ...within(256) },
  }
  const pools: Partial<Record<keyof typeof kinds, Promise<Piscina>>> = {}

  async function open(kind: keyof typeof kinds): Promise<Piscina> {
    const { Piscina } = await import('piscina')
    return new Piscina(kinds[kind])
  }

  return {
    /**
     * Runs it when its turn comes. What is transferred is given away. Throws Failure `no_capacity` where too many wait,
     * or the signal's reason: what runs by then ends with its thread.
     */
    async run(
      kind: keyof typeof kinds,
      request: CpuRequest,
      transferList: Transferable[],
      signal?: AbortSignal,
    ): Promise<unknown> {
      const pool = await (pools[kind] ??= open(kind))
      if (pool.queueSize >= kinds[kind].maxQueue)
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
