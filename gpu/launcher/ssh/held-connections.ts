import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { connectSocket } from '../../../core/connect-patiently.ts'

/** Milliseconds for which a connection waits. */
const waitMs = 30_000

/**
 * Accepts connections at a socket in the place of what is gone, while it is told to, and reads nothing from them: a request waits
 * instead of failing. Ends them after `waitMs`.
 */
export function holdConnections(path: string) {
  const held = new Map<Socket, NodeJS.Timeout>()
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, socket => {
    const timer = setTimeout(() => socket.destroy(), waitMs)
    timer.unref()
    held.set(socket, timer)
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      held.delete(socket)
    })
  })
  server.on('error', () => {})

  async function pass(socket: Socket): Promise<void> {
    try {
      const to = await connectSocket({ path, allowHalfOpen: true }, waitMs)
      to.on('error', () => socket.destroy())
      socket.on('close', () => to.destroy())
      if (socket.destroyed) to.destroy()
      else socket.pipe(to).pipe(socket)
    } catch {
      socket.destroy()
    }
  }

  return {
    /** Accepts connections from now on. Does nothing if it does already. */
    hold(): void {
      if (server.listening) return
      rmSync(path, { force: true })
      server.listen(path)
      server.unref()
    },
    /** Accepts no more and frees the path. */
    stop: (): void => void server.close(),
    /** Connects each to what is at the path now. */
    release(): void {
      for (const [socket, timer] of held) {
        clearTimeout(timer)
        void pass(socket)
      }
      held.clear()
    },
    /** Ends all. */
    end(): void {
      server.close()
      for (const socket of held.keys()) socket.destroy()
    },
  }
}

export type HeldConnections = ReturnType<typeof holdConnections>
