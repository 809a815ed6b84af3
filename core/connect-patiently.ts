import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds until the first and the later attempts. */
const [firstMs, maxMs] = [2, 100]

/**
 * Connects to a Unix socket, and waits while the queue of those who connect to it is full. There the system refuses a
 * connection (EAGAIN); one to a port would wait. `connect` makes one attempt.
 */
export async function connectPatiently<Connected>(
  connect: () => Promise<Connected>,
  withinMs: number,
): Promise<Connected> {
  const until = performance.now() + withinMs
  for (let waitMs = firstMs; ; waitMs = Math.min(2 * waitMs, maxMs)) {
    try {
      return await connect()
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() >= until) throw thrown
      await delay(waitMs)
    }
  }
}
