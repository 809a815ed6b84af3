import type { RawData, WebSocket } from 'ws'
import { Failure } from '../../../core/failure.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { WatchedStream } from '../../http/streams/streams.ts'
import type { RealtimeSession } from './session.ts'

/** Bytes that wait for a client from which on it counts as slow, and from which on it is cut at once. */
const slowBytes = 64 << 10
const maxWaitingBytes = 1 << 20
/** Messages that wait to be handled before the connection is not read any more. */
const maxMessages = 4
/** Milliseconds without a message of the client after which the connection is closed. */
const idleMs = 10 * 60_000
/** Pings without an answer after which the client counts as disconnected. */
const maxUnanswered = 3
/** Milliseconds for the closing handshake. */
const closeMs = 1_000

/** Close codes of RFC 6455. */
const codes = { goingAway: 1001, policy: 1008 }

/**
 * Runs a session over an open WebSocket until either side closes it. The watch over all streams pings it and cuts a
 * client that stops reading. It is closed within a second after its token lost its rights, and when the server stops.
 */
export function runConnection(
  exchange: ClientExchange,
  socket: WebSocket,
  open: (emit: (event: object) => void) => RealtimeSession,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let heardAt = performance.now()
  let unanswered = 0

  function emit(event: object) {
    if (socket.readyState !== socket.OPEN) return
    watched.wroteAt = performance.now()
    socket.send(JSON.stringify(event), () => {
      if (socket.bufferedAmount < slowBytes) watched.blockedSince = undefined
    })
    if (socket.bufferedAmount > maxWaitingBytes) socket.terminate()
    else if (socket.bufferedAmount >= slowBytes) watched.blockedSince ??= watched.wroteAt
  }

  function end(code: number, failure: Failure) {
    session.refuse(failure)
    socket.close(code, failure.code)
    setTimeout(() => socket.terminate(), closeMs).unref()
  }
  const stopping = () =>
    end(codes.goingAway, new Failure('shutting_down', 'The server is stopping. Open the session again in 5 s.'))

  const watched: WatchedStream = {
    setIndex: -1,
    blockedSince: undefined,
    wroteAt: performance.now(),
    ping() {
      const now = performance.now()
      watched.wroteAt = now
      // While the connection is not read, an answer may wait in it.
      if (unanswered >= maxUnanswered && !socket.isPaused) return socket.terminate()
      if (now - heardAt > idleMs)
        return end(codes.policy, new Failure('timeout', 'The session was idle for ten minutes. Open a new one.'))
      unanswered++
      socket.ping()
    },
    cut: () => socket.terminate(),
    interrupt: stopping,
    dismiss: stopping,
  }
  const session = open(emit)

  const waiting: string[] = []
  let handling = false
  async function handleAll() {
    if (handling) return
    handling = true
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await session.handle(next)
      if (socket.isPaused && waiting.length < maxMessages) socket.resume()
    }
    handling = false
  }

  socket.on('message', (data: RawData, isBinary: boolean) => {
    heardAt = performance.now()
    unanswered = 0
    if (isBinary)
      return session.refuse(new Failure('invalid_type', 'Binary messages are not supported. Send audio as base64.'))
    waiting.push((data as Buffer).toString('utf8'))
    if (waiting.length >= maxMessages) socket.pause()
    void handleAll()
  })
  socket.on('pong', () => (unanswered = 0))
  socket.on('error', () => socket.terminate())
  const unwatch = exchange.access.watch(exchange, failure => end(codes.policy, failure))
  socket.once('close', () => {
    exchange.streams.remove(watched)
    unwatch()
    session.close()
    waiting.length = 0
    resolve()
  })
  exchange.streams.add(watched)
  session.begin()
  return promise
}
