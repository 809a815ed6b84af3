import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import type { NextEntry, Queue } from './queue.ts'
import type { StoreRead } from './windows.ts'

/** Reads jobs from the store into the queue, ahead of need where possible. Calls `filled` with the model. */
export function openRefill(options: {
  store: Pick<Store['jobs'], 'waiting' | 'backlog'>
  queue: Queue
  log: Log
  filled: (modelId: string) => void
}) {
  const { store, queue, log, filled } = options
  const reads = new Set<Promise<void>>()
  let readingAll: Promise<void> | undefined
  let closed = false

  function read(needed: StoreRead): Promise<void> {
    const { reading: _reading, ...query } = needed
    const one = store.waiting(query).then(
      jobs => queue.readDone(needed, jobs),
      (thrown: unknown) => {
        queue.readFailed(needed)
        throw thrown
      },
    )
    reads.add(one)
    return one.finally(() => reads.delete(one))
  }

  async function readAll(): Promise<void> {
    try {
      for (let needed = queue.nextRead(); needed; needed = queue.nextRead()) {
        if (closed) return queue.readFailed(needed)
        await read(needed)
        filled(needed.modelId)
        // A thousand organizations are a thousand reads: yields to the event loop between them.
        await nextTurn()
      }
    } catch (thrown) {
      // The tick tries again.
      if (!Failure.from(thrown).retryable) log.error('Pending jobs could not be read', {}, thrown)
    }
  }

  function wake(): void {
    readingAll ??= readAll().finally(() => {
      readingAll = undefined
    })
  }

  return {
    /**
     * Counts the pending jobs before any other job is accepted, so that later ones are known to be new. Never rejects.
     */
    async begin(): Promise<void> {
      for (let waitMs = 100; ; waitMs = Math.min(2 * waitMs, 5_000)) {
        if (closed) return
        try {
          queue.begin(await store.backlog())
          return wake()
        } catch (thrown) {
          if (Failure.from(thrown).code === 'shutting_down') return
          log.error('Pending jobs could not be counted; this is retried', {}, thrown)
        }
        await delay(waitMs, undefined, { ref: false })
      }
    },
    /** Does the reads that the queue needs, in the background. */
    wake,
    /** Resolves when the queue may know more. Rejects with the store's error. */
    async now(next: Exclude<NextEntry, { job: unknown }>): Promise<void> {
      if ('read' in next) await read(next.read)
      else await Promise.race(reads)
    },
    async close(): Promise<void> {
      closed = true
      await Promise.allSettled([readingAll, ...reads])
    },
  }
}
export type Refill = ReturnType<typeof openRefill>
