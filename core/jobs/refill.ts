import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import type { NextEntry, Queue } from './queue.ts'
import type { StoreRead } from './windows.ts'

/** Brings jobs from the store into the queue, before they are needed where it can. `filled` hears for which model. */
export function openRefill({
  store,
  queue,
  log,
  filled,
}: {
  store: Pick<Store['jobs'], 'waiting' | 'backlog'>
  queue: Queue
  log: Log
  filled: (modelId: string) => void
}) {
  const reads = new Set<Promise<void>>()
  let pumping: Promise<void> | undefined
  let closed = false

  function read(want: StoreRead): Promise<void> {
    const { reading: _reading, ...query } = want
    const one = store.waiting(query).then(
      jobs => queue.found(want, jobs),
      (thrown: unknown) => {
        queue.missed(want)
        throw thrown
      },
    )
    reads.add(one)
    return one.finally(() => reads.delete(one))
  }

  async function pump(): Promise<void> {
    try {
      for (let want = queue.wanted(); want; want = queue.wanted()) {
        if (closed) return queue.missed(want)
        await read(want)
        filled(want.modelId)
        // A thousand organizations are a thousand looks: others have their turns in between.
        await turn()
      }
    } catch (thrown) {
      // The tick tries again.
      if (!Failure.from(thrown).retryable) log.error('The jobs that wait could not be read', {}, thrown)
    }
  }

  function wake(): void {
    pumping ??= pump().finally(() => {
      pumping = undefined
    })
  }

  return {
    /** Counts what waits, before anything else comes: so whatever comes later is known to be new. Never rejects. */
    async begin(): Promise<void> {
      for (let waitMs = 100; ; waitMs = Math.min(2 * waitMs, 5_000)) {
        if (closed) return
        try {
          queue.begin(await store.backlog())
          return wake()
        } catch (thrown) {
          if (Failure.from(thrown).code === 'shutting_down') return
          log.error('The jobs that wait could not be counted; it is tried again', {}, thrown)
        }
        await delay(waitMs, undefined, { ref: false })
      }
    },
    /** Reads what is wanted, in the background. */
    wake,
    /** Resolves when the queue may know more. Rejects with what the store says. */
    async now(next: Exclude<NextEntry, { job: unknown }>): Promise<void> {
      if ('read' in next) await read(next.read)
      else await Promise.race(reads)
    },
    async close(): Promise<void> {
      closed = true
      await Promise.allSettled([pumping, ...reads])
    },
  }
}
export type Refill = ReturnType<typeof openRefill>
