import type { IncomingMessage, ServerResponse } from 'node:http'
import { countChunk } from '../../../core/collect-garbage.ts'

/** Bytes of a refused body that are read; a client that sends more is disconnected. */
const maxDiscarded = 128 << 20
/** Milliseconds after its last answer for which a connection stays open for the rest of a refused body. */
const lingerMs = 15_000

/** Asks the client of a request for its body; by request that waits for `100 Continue`. */
const waiting = new WeakMap<IncomingMessage, () => void>()

/**
 * Defers the `100 Continue` of a request until its body is read. If it is refused before, its connection is closed after
 * the answer: the server could not know whether a body follows.
 */
export function deferContinue(
  req: IncomingMessage,
  res: ServerResponse & { maxRequestsOnConnectionReached?: boolean },
): void {
  const keepAlive = res.shouldKeepAlive && !res.maxRequestsOnConnectionReached
  res.shouldKeepAlive = false
  waiting.set(req, () => {
    res.shouldKeepAlive = keepAlive
    res.writeContinue()
  })
}

/** Sends `100 Continue` to a client that waits for it. Call it before you read the body. */
export function askForBody(req: IncomingMessage): void {
  waiting.get(req)?.()
  waiting.delete(req)
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/**
 * Reads and drops the rest of the body while the request is refused. Most clients read the answer only after they have
 * sent everything: if the connection were closed before, they would see EPIPE and not the answer.
 */
export function discardRest(req: IncomingMessage): void {
  if (!hasBody(req) || req.complete || req.destroyed) return
  const { socket } = req
  let remaining = maxDiscarded
  req.on('data', (chunk: Buffer) => {
    remaining -= chunk.length
    countChunk(chunk.length)
    if (remaining < 0) socket.destroy()
  })
  const closed = Promise.withResolvers<void>()
  req.once('end', closed.resolve).once('close', closed.resolve).once('error', closed.resolve)
  // Node calls this after the last answer of a connection, and would reset a connection that is still receiving.
  socket.destroySoon = () => {
    socket.end()
    const timer = setTimeout(closed.resolve, lingerMs)
    void closed.promise.then(() => {
      clearTimeout(timer)
      socket.destroy()
    })
  }
  void closed.promise.then(() => Reflect.deleteProperty(socket, 'destroySoon'))
}
