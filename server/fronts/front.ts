import type { SendHandle } from 'node:child_process'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer, type Server as HttpsServer } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../core/log.ts'
import { configureServer } from '../http/configure-server.ts'
import { openAcceptors } from '../http/connection/acceptors.ts'
import { asksForWebSocket } from '../surfaces/realtime/upgrade.ts'
import { type Forwarder, openForwarder } from './forward.ts'
import type { LocalWayOptions } from './local-way.ts'
import { type FrontParts, type LocalWork, openLocalWork } from './local-work.ts'
import type { FromFront, FrontStart, ToFront } from './messages.ts'

/** Milliseconds that clients have to read the last answers when the front ends. */
const closeTimeoutMs = 250

/** The channel between a front and control: that of a child process with its parent. */
export interface Channel {
  send: (message: FromFront, socket?: SendHandle) => void
  onMessage(listener: (message: ToFront, socket?: unknown) => void): void
  /** Called when control has ended or closed the channel. */
  onClosed(listener: () => void): void
}

/**
 * Runs a front process: accepts the connections of clients, answers what it can and passes the rest on to control. Resolves when
 * control ends it, or has ended itself.
 */
export async function runFront(channel: Channel, parts: FrontParts): Promise<void> {
  const closed = Promise.withResolvers<void>()
  let front: ReturnType<typeof openFront> | undefined
  channel.onClosed(closed.resolve)
  channel.onMessage((message, socket) => {
    if (message.kind === 'start') front = openFront(message, channel, parts, socket)
    else if (message.kind === 'close') void (front?.close() ?? Promise.resolve()).then(closed.resolve)
    else front?.received(message)
  })
  channel.send({ kind: 'loaded' })
  await closed.promise
}

function openFront(
  { host, port, descriptors, backlog, keyPair, limits, connections, ...control }: FrontStart,
  channel: Channel,
  parts: FrontParts,
  /** The socket of a front before this one. */
  inherited: unknown,
) {
  const log = logOf(channel)
  let forwarder = openForwarder(control)
  const forward: LocalWayOptions['forward'] = (req, res, tried) => forwarder.forward(req, res, tried)
  let local: LocalWork | undefined
  const handler: RequestListener = (req, res) => {
    // Node sends `Connection: close` with the last answer of a connection but keeps the connection open.
    if ((res as { maxRequestsOnConnectionReached?: boolean }).maxRequestsOnConnectionReached)
      res.shouldKeepAlive = false
    if (local?.takes(req)) local.answer(req, res)
    else forward(req, res)
  }
  const server = keyPair ? createSecureServer(keyPair, handler) : createServer(handler)
  const upgrade: Forwarder['upgrade'] = (req, socket, head) => forwarder.upgrade(req, socket, head)
  const handshakes = configureServer(server, { limits, connections, handler, asksForWebSocket, upgrade })
  server.once('error', ({ code, message }: NodeJS.ErrnoException) => channel.send({ kind: 'refused', code, message }))
  const [first, ...further] = descriptors
  const opensOne = first === undefined && !inherited
  const at = opensOne ? { host, port, backlog, reusePort: true } : (inherited ?? { fd: first, backlog })
  let acceptors: ReturnType<typeof openAcceptors> | undefined
  server.listen(at, () => {
    server.removeAllListeners('error')
    // From here on an error is a connection that could not be accepted.
    server.on('error', cause => log.warn('A connection was not accepted', {}, cause))
    acceptors = openAcceptors(server, further)
    // Control keeps the socket for the front, or the server, that comes after this one.
    channel.send({ kind: 'listening' }, opensOne ? acceptors.handle() : undefined)
  })

  async function leave({ deadlineMs, ...target }: Extract<ToFront, { kind: 'leave' }>): Promise<void> {
    const until = performance.now() + deadlineMs
    const before = forwarder
    forwarder = openForwarder(target, { isLast: true })
    acceptors?.stop()
    await local?.drain(deadlineMs)
    await acceptors?.ended(until - performance.now())
    before.close()
    channel.send({ kind: 'left' })
  }

  return {
    received(message: ToFront): void {
      if (message.kind === 'leave') void leave(message)
      else if (message.kind === 'keyPair') (server as HttpsServer).setSecureContext(message.keyPair)
      else if (message.kind === 'serve') {
        const secure = keyPair !== undefined
        local = openLocalWork({ ...message, parts, secure, forward, send: channel.send, log })
      } else if (local) local.received(message)
      // Nothing was answered here.
      else if (message.kind === 'drain') channel.send({ kind: 'drained' })
      else if ('number' in message) channel.send({ kind: 'done', number: message.number })
    },
    async close(): Promise<void> {
      const ended = new Promise<void>(resolve => server.close(() => resolve()))
      acceptors?.stop()
      const all = Promise.all([ended, acceptors?.ended(closeTimeoutMs)])
      await Promise.race([all, delay(closeTimeoutMs, undefined, { ref: false })])
      handshakes?.closeAll()
      server.closeAllConnections()
      forwarder.close()
      await ended
    },
  }
}

/** The log of a front: its lines are written by control, whose level and journal then apply to them. */
function logOf(channel: Channel): Log {
  const at =
    (level: 'debug' | 'info' | 'warn' | 'error'): Log['warn'] =>
    (message, fields = {}, thrown) => {
      const cause = thrown instanceof Error ? (thrown.stack ?? thrown.message) : thrown && JSON.stringify(thrown)
      channel.send({ kind: 'log', level, message, fields, cause: cause as string | undefined })
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
