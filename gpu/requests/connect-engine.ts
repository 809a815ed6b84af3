import { connect, isIP, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { connectPatiently } from '../../core/connect-patiently.ts'
import { connectOptions } from '../launcher/endpoint-tls.ts'
import type { Endpoint } from '../launcher/launcher.ts'
import { ConnectionError } from './http-request.ts'

/** All reads go here and are copied at once: a buffer for each would have 64 KiB, for 200 bytes of a chunk. */
const readBuffer = Buffer.allocUnsafeSlow(64 << 10)

export interface ConnectOptions {
  /** How long the other side may take to accept the connection, milliseconds. */
  connectMs: number
  /** The TLS session of an earlier connection. */
  session: Buffer | undefined
  /** Gets what arrives. Returns false to read nothing more until the socket is resumed. */
  read: (bytes: Buffer) => boolean
}

/** Connects to an engine. Rejects with the error of the socket, or with ConnectionError. */
export async function connectEngine(
  endpoint: Pick<Endpoint, 'origin' | 'socketPath' | 'tls'>,
  { connectMs, session, read }: ConnectOptions,
): Promise<Socket> {
  const { protocol, hostname, port } = new URL(endpoint.origin)
  // Its code takes memory, and few engines need it.
  const tls = protocol === 'https:' ? await import('node:tls') : undefined
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const options = {
    host,
    port: Number(port) || (tls ? 443 : 80),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
    onread: {
      buffer: readBuffer,
      // Copied before anything else: what is done now may read from another encrypted socket.
      callback: (length: number) => read(Buffer.from(readBuffer.subarray(0, length))),
    },
    ...(endpoint.socketPath !== undefined && { path: endpoint.socketPath }),
  }
  const encrypted: ConnectionOptions = {
    ...(isIP(host) === 0 && { servername: host }),
    ...(session && { session }),
    ALPNProtocols: ['http/1.1'],
    ...connectOptions(endpoint),
  }
  const until = performance.now() + connectMs
  const unreached = () => new ConnectionError('UNREACHED', `Nobody accepted the connection within ${connectMs} ms.`)
  try {
    return await connectPatiently(() => {
      const socket = tls ? tls.connect({ ...options, ...encrypted }) : connect(options)
      return accepted(socket, { event: tls ? 'secureConnect' : 'connect', until, unreached })
    }, connectMs)
  } catch (thrown) {
    throw (thrown as NodeJS.ErrnoException).code === 'EAGAIN' ? unreached() : thrown
  }
}

/** Resolves when the other side has accepted the connection. `until`: when it fails, by `performance.now()`. */
function accepted(
  socket: Socket,
  { event, until, unreached }: { event: string; until: number; unreached: () => Error },
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(unreached()), until - performance.now())
    socket
      .once(event, () => {
        clearTimeout(timer)
        resolve(socket)
      })
      .on('error', error => {
        clearTimeout(timer)
        reject(error)
      })
  })
}
