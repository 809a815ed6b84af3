import { join } from 'node:path'
import type { Connection } from './connection.ts'
import { type HeldConnections, holdConnections } from './held-connections.ts'

interface Forward {
  connection: Connection
  to: string
  made: Promise<void>
  /** Requests that wait for the next connection. */
  held?: HeldConnections
}

/**
 * The sockets of this machine that lead to engines of another, in a folder. Their paths stay when the connection is another, and
 * meanwhile requests wait there.
 */
export function openForwards(folder: string) {
  const forwards = new Map<string, Forward>()
  const pathOf = (launchId: string): string => join(folder, launchId.slice(-18))

  async function make(launchId: string, to: string, connection: Connection): Promise<void> {
    const path = pathOf(launchId)
    const held = forwards.get(launchId)?.held
    held?.stop()
    const made = connection.forward(path, to)
    const forward: Forward = { connection, to, made }
    forwards.set(launchId, forward)
    void connection.ended.then(() => {
      if (forwards.get(launchId) === forward) forward.held = holdConnections(path)
    })
    try {
      await made
      held?.release()
    } catch (thrown) {
      held?.end()
      if (forwards.get(launchId) === forward && !forward.held) forwards.delete(launchId)
      throw thrown
    }
  }

  return {
    /** The socket that leads to an engine; it is made for each connection once. `to`: a socket path, or address and port. */
    async get(launchId: string, to: string, connection: Connection): Promise<string> {
      const before = forwards.get(launchId)
      await (before?.connection === connection ? before.made : make(launchId, to, connection))
      return pathOf(launchId)
    },
    /** Removes the socket of a launch that has ended. */
    async end(launchId: string, connection: Connection): Promise<void> {
      const forward = forwards.get(launchId)
      if (!forward) return
      forwards.delete(launchId)
      forward.held?.end()
      await forward.made.catch(() => {})
      if (forward.connection === connection) await connection.cancel(pathOf(launchId), forward.to)
    },
    /** Lets nothing wait any more. */
    close(): void {
      for (const { held } of forwards.values()) held?.end()
      forwards.clear()
    },
  }
}
