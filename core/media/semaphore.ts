import { Failure } from '../failure.ts'

/** Arguments of `openSemaphore`. */
export interface SemaphoreOptions {
  /** How many works of one name run at once. */
  permits: number
  /** How many works of one name may wait. */
  maxWaiting: number
  /** The message of the failure when more come. */
  full: string
}

/** Opens a semaphore for each name: `permits` works run at once, the others wait in the order in which they came. */
export function openSemaphore({ permits, maxWaiting, full }: SemaphoreOptions) {
  /** Names without work are not kept. */
  const queues = new Map<string, { running: number; waiting: (() => void)[] }>()

  /** Rejects with Failure `no_capacity` when too many wait, and with the signal's reason where it aborts first. */
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
      // A permit passes to the next without becoming free, so that nobody who comes meanwhile takes it first.
      const next = queue.waiting.shift()
      if (next) next()
      else if (--queue.running === 0) queues.delete(name)
    }
  }

  return {
    run,
    /** How many names have work. */
    busy: (): number => queues.size,
  }
}

/** Resolves when it receives a permit; a work whose signal aborts is removed from the queue. */
function permit(waiting: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
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
