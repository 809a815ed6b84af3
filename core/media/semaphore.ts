import { Failure } from '../failure.ts'

/** Arguments of `openSemaphore`. */
export interface SemaphoreOptions {
  /** How many calls of one name run at once. */
  permits: number
  /** How many calls of one name may wait. */
  maxWaiting: number
  /** The message of the failure when too many calls wait. */
  full: string
}

/** Opens a semaphore for each name: `permits` calls run at once, the others wait in the order of their calls. */
export function openSemaphore({ permits, maxWaiting, full }: SemaphoreOptions) {
  /** Has only names with running calls. */
  const queues = new Map<string, { running: number; waiting: (() => void)[] }>()

  /** Rejects with Failure `no_capacity` when too many calls wait, and with the signal's reason when it aborts first. */
  async function run<T>(name: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted()
    const queue = queues.get(name) ?? { running: 0, waiting: [] }
    queues.set(name, queue)
    if (queue.running >= permits) {
      if (queue.waiting.length >= maxWaiting) throw new Failure('no_capacity', full, { retryAfterMs: 1_000 })
      await permit(queue.waiting, signal)
    } else queue.running++
    try {
      return await work()
    } finally {
      // The permit passes directly to the next waiting call, so that a new call cannot take it first.
      const next = queue.waiting.shift()
      if (next) next()
      else if (--queue.running === 0) queues.delete(name)
    }
  }

  return {
    run,
    /** How many names have running calls. */
    busy: (): number => queues.size,
  }
}

/** Resolves when the call gets a permit. A call whose signal aborts is removed from the queue. */
export function permit(waiting: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const start = () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }
    const abort = () => {
      waiting.splice(waiting.indexOf(start), 1)
      reject(signal?.reason as Error)
    }
    signal?.addEventListener('abort', abort, { once: true })
    waiting.push(start)
  })
}
