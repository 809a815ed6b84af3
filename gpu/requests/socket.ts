import type { WebSocket } from 'ws'
import { Failure } from '../../core/failure.ts'
import type { EngineSocket, SocketListener } from '../../core/models/engine-socket.ts'
import { connectOptions } from '../launcher/endpoint-tls.ts'
import type { EngineConnections } from './connections.ts'

/** Bytes of one message; a larger one breaks the socket. */
const maxMessageBytes = 32 << 20
const openWithinMs = 5_000

/**
 * Opens a WebSocket to the engine at this origin. On one that is open, no message for `no_progress` is a failure, as it is for requests.
 * It occupies no connection of the slots. `ownHeaders`: names and values in turn, sent besides those of all requests.
 */
export function openEngineSocket(
  connections: EngineConnections,
  address: string,
  path: string,
  ownHeaders: readonly string[],
  listener: SocketListener,
): EngineSocket {
  const { modelId, endpoint, headers, noProgressMs } = connections.options
  let socket: WebSocket | undefined
  let over = false
  const silence = setTimeout(
    () => fail(`made no progress for ${noProgressMs / 1000} s`, undefined, 'timeout'),
    noProgressMs,
  )

  function end(): boolean {
    if (over) return false
    over = true
    clearTimeout(silence)
    socket?.terminate()
    return true
  }

  function fail(what: string, cause?: unknown, code: 'worker_error' | 'timeout' = 'worker_error'): void {
    if (!end()) return
    try {
      listener.failed(new Failure(code, `The engine of '${modelId}' ${what}. Trying again may help.`, { cause }))
    } catch (thrown) {
      connections.options.listenerThrew(thrown)
    }
    if (code === 'timeout') connections.stalled()
  }

  /** Calls the listener; an exception that it throws is a bug and ends the socket. */
  function notify(call: () => void): void {
    if (over) return
    connections.lastProgressAt = performance.now()
    silence.refresh()
    try {
      call()
    } catch (thrown) {
      connections.options.listenerThrew(thrown)
      fail('sent a message that could not be handled', thrown)
    }
  }

  async function open(): Promise<void> {
    const { WebSocket: Client } = await import('ws')
    if (over) return
    const origin = address.replace(/^http/, 'ws')
    socket = new Client(endpoint.socketPath ? `ws+unix://${endpoint.socketPath}:${path}` : `${origin}${path}`, {
      headers: Object.fromEntries(
        [...headers, ...ownHeaders].flatMap((name, at, all) =>
          at % 2 === 0 && name !== 'content-type' ? [[name, all[at + 1]!]] : [],
        ),
      ),
      maxPayload: maxMessageBytes,
      perMessageDeflate: false,
      ...connectOptions(endpoint),
      handshakeTimeout: openWithinMs,
    })
    socket.binaryType = 'nodebuffer'
    socket.on('open', () => notify(() => listener.opened()))
    socket.on('message', (data, isBinary) =>
      notify(() => listener.message(isBinary ? (data as Buffer) : (data as Buffer).toString('utf8'))),
    )
    socket.on('error', cause => fail('broke its WebSocket', cause))
    socket.on('close', () => fail('closed its WebSocket'))
  }

  void open().catch((cause: unknown) => fail('cannot be reached by WebSocket', cause))
  return { close: () => void end() }
}
