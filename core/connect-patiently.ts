import { once } from 'node:events'
import { connect, type IpcNetConnectOpts, type Socket } from 'node:net'
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

/** The same with a plain socket. */
export const connectSocket = (options: IpcNetConnectOpts, withinMs: number): Promise<Socket> =>
  connectPatiently(async () => {
    const socket = connect(options)
    await once(socket, 'connect')
    return socket
  }, withinMs)
