import { join } from 'node:path'
import type { Connection } from './connection.ts'

interface Forward {
  connection: Connection
  to: string
  made: Promise<void>
}

/** The sockets of this machine that lead to engines of another, in a folder. Their paths stay when the connection is another. */
export function openForwards(folder: string) {
  const forwards = new Map<string, Forward>()
  const pathOf = (launchId: string): string => join(folder, launchId.slice(-18))

  return {
    /** The socket that leads to an engine; it is made for each connection once. `to`: a socket path, or address and port. */
    async get(launchId: string, to: string, connection: Connection): Promise<string> {
      const path = pathOf(launchId)
      const before = forwards.get(launchId)
      if (before?.connection === connection) await before.made
      else {
        const made = connection.forward(path, to)
        forwards.set(launchId, { connection, to, made })
        try {
          await made
        } catch (thrown) {
          if (forwards.get(launchId)?.made === made) forwards.delete(launchId)
          throw thrown
        }
      }
      return path
    },
    /** Removes the socket of a launch that has ended. */
    async end(launchId: string, connection: Connection): Promise<void> {
      const forward = forwards.get(launchId)
      if (!forward) return
      forwards.delete(launchId)
      await forward.made.catch(() => {})
      if (forward.connection === connection) await connection.cancel(pathOf(launchId), forward.to)
    },
  }
}
