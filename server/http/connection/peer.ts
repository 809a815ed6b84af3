import type { IncomingMessage } from 'node:http'

/** The other end of the connection on which a client sent a request. */
export interface Peer {
  /** Its IP address; undefined once the connection is closed. */
  remoteAddress?: string | undefined
  /** Whether the connection uses TLS. */
  encrypted?: boolean
}

const peer = Symbol('peer')
type Marked = IncomingMessage & { [peer]?: Peer }

/** Returns who sent a request: the peer of its connection, or that of the gateway process which accepted it. */
export const peerOf = (req: IncomingMessage): Peer => (req as Marked)[peer] ?? req.socket

/** Sets who sent a request that a gateway process has accepted. */
export function setPeer(req: IncomingMessage, of: Peer): void {
  ;(req as Marked)[peer] = of
}
