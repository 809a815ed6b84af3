import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer, type Server as HttpsServer } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../core/log.ts'
import { configureServer } from '../http/configure-server.ts'
import { asksForWebSocket } from '../surfaces/realtime/upgrade.ts'
import { openForwarder } from './forward.ts'
import { type FrontParts, type LocalWork, openLocalWork } from './local-work.ts'
import type { FromFront, FrontStart, ToFront } from './messages.ts'

/** Milliseconds that clients have to read the last answers when the front ends. */
const closeTimeoutMs = 250

/** The channel between a front and control: that of a child process with its parent. */
export interface Channel {
  send: (message: FromFront) => void
  onMessage(listener: (message: ToFront) => void): void
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
  channel.onMessage(message => {
    if (message.kind === 'start') front = openFront(message, channel, parts)
    else if (message.kind === 'close') void (front?.close() ?? Promise.resolve()).then(closed.resolve)
    else front?.received(message)
  })
  await closed.promise
}

function openFront(
  { host, port, backlog, keyPair, limits, connections, ...control }: FrontStart,
  channel: Channel,
  parts: FrontParts,
) {
  const log = logOf(channel)
  const forwarder = openForwarder(control)
  const { forward } = forwarder
  let local: LocalWork | undefined
  const handler: RequestListener = (req, res) => {
    // Node sends `Connection: close` with the last answer of a connection but keeps the connection open.
    if ((res as { maxRequestsOnConnectionReached?: boolean }).maxRequestsOnConnectionReached)
      res.shouldKeepAlive = false
    if (local?.takes(req)) local.answer(req, res)
    else forward(req, res)
  }
  const server = keyPair ? createSecureServer(keyPair, handler) : createServer(handler)
  const { upgrade } = forwarder
  const handshakes = configureServer(server, { limits, connections, handler, asksForWebSocket, upgrade })
  server.once('error', ({ code, message }: NodeJS.ErrnoException) => channel.send({ kind: 'refused', code, message }))
  server.listen({ host, port, backlog, reusePort: true }, () => {
    server.removeAllListeners('error')
    // From here on an error is a connection that could not be accepted.
    server.on('error', cause => log.warn('A connection was not accepted', {}, cause))
    channel.send({ kind: 'listening' })
  })

  return {
    received(message: ToFront): void {
      if (message.kind === 'keyPair') (server as HttpsServer).setSecureContext(message.keyPair)
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
      await Promise.race([ended, delay(closeTimeoutMs, undefined, { ref: false })])
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
