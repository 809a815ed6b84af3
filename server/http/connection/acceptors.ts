import type { SendHandle } from 'node:child_process'
import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { createServer, Server as SocketServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** How often open connections are counted, milliseconds. */
const countEveryMs = 20

type Opened = SocketServer & { allowHalfOpen: boolean; noDelay: boolean; _handle: { fd: number } | null }

/**
 * What accepts the connections of an HTTP server: the server itself, and further sockets of the same address that listen
 * already, by their file descriptors. The errors of these are those of the server.
 */
export function openAcceptors(server: HttpServer | HttpsServer, descriptors: readonly number[]) {
  const { allowHalfOpen, noDelay, maxConnections } = server as unknown as Opened
  const further = descriptors.map(fd => {
    const more = createServer({ allowHalfOpen, noDelay }, socket => server.emit('connection', socket))
    more.maxConnections = maxConnections
    more.on('error', cause => server.emit('error', cause))
    return more.listen({ fd })
  })
  const all = [server, ...further]
  return {
    /** The file descriptors of all that accept now. */
    descriptors: (): number[] => all.flatMap(one => (one as Opened)._handle?.fd ?? []),
    /** The socket of the server itself, as a message between processes takes it along. */
    handle: (): SendHandle => (server as unknown as { _handle: SendHandle })._handle,
    /** Accepts no more connections. Open ones stay as they are, and so do idle ones, on which a request may be arriving. */
    stop(): void {
      for (const one of all) if (one.listening) SocketServer.prototype.close.call(one)
    },
    /** Resolves when no connection is open, or after so many milliseconds, with whether none is. */
    async ended(withinMs: number): Promise<boolean> {
      const until = performance.now() + withinMs
      for (;;) {
        const open = await Promise.all(
          all.map(one => new Promise<number>(resolve => one.getConnections((_, count) => resolve(count ?? 0)))),
        )
        if (open.every(count => count === 0)) return true
        if (performance.now() > until) return false
        await delay(countEveryMs)
      }
    },
  }
}
