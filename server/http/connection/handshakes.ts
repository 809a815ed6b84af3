import type { Server } from 'node:https'
import type { Socket } from 'node:net'

/**
 * Closes connections that have not finished their TLS handshake in time: Node's check for slow connections begins only
 * after the handshake. `closeAll` closes those whose handshake has not finished.
 */
export function openHandshakes(server: Server, timeoutMs: number) {
  const pending = new Map<string, { socket: Socket; timer: NodeJS.Timeout }>()
  const finish = (peer: string) => {
    clearTimeout(pending.get(peer)?.timer)
    pending.delete(peer)
  }
  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket)
    const timer = setTimeout(() => socket.destroy(), timeoutMs)
    pending.set(peer, { socket, timer })
    socket.once('close', () => {
      if (pending.get(peer)?.socket === socket) finish(peer)
    })
  })
  // The TLS socket and its plain socket are different objects with the same peer.
  server.on('secureConnection', socket => finish(peerOf(socket)))
  return {
    closeAll(): void {
      for (const { socket } of pending.values()) socket.destroy()
    },
  }
}
export type Handshakes = ReturnType<typeof openHandshakes>

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
