import { join } from 'node:path'
import type { Connection } from './connection.ts'
import { type HeldConnections, holdConnections } from './held-connections.ts'

interface Forward {
  connection: Connection
  to: string
  made: Promise<void>
  hasFailed: boolean
}

/**
 * The sockets of this machine that lead to engines of another, in a folder. Their paths stay when the connection is another, and
 * meanwhile requests wait there.
 */
export function openForwards(folder: string) {
  const forwards = new Map<string, Forward>()
  /** For each socket that was made before: requests that wait while it is not there. */
  const held = new Map<string, HeldConnections>()
  const pathOf = (launchId: string): string => join(folder, launchId.slice(-18))

  async function make(launchId: string, to: string, connection: Connection): Promise<void> {
    held.get(launchId)?.stop()
    const made = connection.forward(pathOf(launchId), to)
    const forward: Forward = { connection, to, made, hasFailed: false }
    forwards.set(launchId, forward)
    const isCurrent = () => forwards.get(launchId) === forward
    try {
      await made
    } catch (thrown) {
      forward.hasFailed = true
      if (isCurrent()) held.get(launchId)?.hold()
      throw thrown
    }
    const own = held.get(launchId) ?? holdConnections(pathOf(launchId))
    held.set(launchId, own)
    own.release()
    void connection.ended.then(() => isCurrent() && own.hold())
  }

  return {
    /**
     * The socket that leads to an engine; it is made for each connection once. `to`: a socket path, or address and port. Rejects
     * where it cannot be made: then the next call tries again.
     */
    async get(launchId: string, to: string, connection: Connection): Promise<string> {
      const before = forwards.get(launchId)
      const isOwn = before?.connection === connection && !before.hasFailed
      await (isOwn ? before.made : make(launchId, to, connection))
      return pathOf(launchId)
    },
    /** The socket of a launch that was made before, at which requests wait while it is not there; undefined if it never was. */
    known: (launchId: string): string | undefined => (held.has(launchId) ? pathOf(launchId) : undefined),
    /** Removes the socket of a launch that has ended. */
    async end(launchId: string, connection: Connection): Promise<void> {
      const forward = forwards.get(launchId)
      if (!forward) return
      forwards.delete(launchId)
      held.get(launchId)?.end()
      held.delete(launchId)
      await forward.made.catch(() => {})
      if (forward.connection === connection) await connection.cancel(pathOf(launchId), forward.to)
    },
    /** Lets nothing wait any more. */
    close(): void {
      for (const one of held.values()) one.end()
      held.clear()
      forwards.clear()
    },
  }
}
