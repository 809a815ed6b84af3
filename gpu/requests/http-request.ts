import type { Socket } from 'node:net'
import { writeTogether } from '../../core/write-together.ts'

export interface HttpRequest {
  method: string
  /** Path and query. */
  path: string
  /** Lines of headers, as `headerLines` makes them. */
  headers: string
  /** Null: none, and once it is sent. */
  body: string | Uint8Array | BodyPieces | null
  /** Length of a body that comes in pieces. */
  bodyBytes?: number | undefined
  /** How long neither side may send anything, milliseconds. */
  timeoutMs: number
}
export type BodyPieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/**
 * How a connection fails besides the errors of its socket: `UNREACHED`, nobody accepted it in time; `CLOSED`, before the answer was
 * complete; `TIMEOUT`, neither side sent anything; `MALFORMED`, the answer is not HTTP; `UNSENDABLE`, the request is not.
 */
export class ConnectionError extends Error {
  readonly code: 'UNREACHED' | 'CLOSED' | 'TIMEOUT' | 'MALFORMED' | 'UNSENDABLE'

  constructor(code: ConnectionError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

const unsendable = (what: string) =>
  new ConnectionError('UNSENDABLE', `${what} has a character that HTTP does not allow.`)

/** Returns the lines of these headers, names and values alternating. Throws ConnectionError for what HTTP does not allow. */
export function headerLines(headers: readonly string[]): string {
  let lines = ''
  for (let at = 0; at < headers.length; at += 2) {
    const [name, value] = [headers[at]!, headers[at + 1]!]
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
      throw unsendable(`The header '${name}'`)
    lines += `${name}: ${value}\r\n`
  }
  return lines
}

/** Writes a request, and of a body in pieces its head alone. Throws ConnectionError for what HTTP does not allow. */
export function writeRequest(
  socket: Socket,
  { method, path, headers, body, bodyBytes }: HttpRequest,
  host: string,
): void {
  if (!/^[\x21-\x7e\x80-\xff]+$/.test(path)) throw unsendable(`The path '${path}'`)
  writeTogether(socket)
  const start = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n${headers}`
  if (body === null)
    return void socket.write(`${start}${method === 'POST' ? 'content-length: 0\r\n' : ''}\r\n`, 'latin1')
  const isText = typeof body === 'string'
  const length = isText ? Buffer.byteLength(body) : body instanceof Uint8Array ? body.length : bodyBytes!
  const head = `${start}content-length: ${length}\r\n\r\n`
  // Text in ASCII is one string with its head.
  if (isText && length === body.length) return void socket.write(head + body, 'latin1')
  socket.write(head, 'latin1')
  if (isText || body instanceof Uint8Array) socket.write(body)
}

/** Writes a body in pieces, as fast as the other side takes it, while `isWanted`. Rejects if it has another length. */
export async function writePieces(
  socket: Socket,
  pieces: BodyPieces,
  bytes: number,
  isWanted: () => boolean,
): Promise<void> {
  let sent = 0
  const wrongLength = () =>
    new ConnectionError('UNSENDABLE', `The body has ${sent} bytes where ${bytes} were announced.`)
  for await (const piece of pieces) {
    if (!isWanted()) return
    sent += piece.length
    if (sent > bytes) throw wrongLength()
    if (!socket.write(piece)) await drained(socket)
  }
  if (sent < bytes && isWanted()) throw wrongLength()
}

const drained = (socket: Socket): Promise<void> =>
  new Promise(resolve => {
    const done = () => {
      socket.off('drain', done).off('close', done)
      resolve()
    }
    socket.on('drain', done).on('close', done)
  })
