import type { Duplex } from 'node:stream'
import { newId } from '../../../core/ids.ts'

/** Answers a request that could not be parsed, and so reaches no route, in the common error format. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  // Nothing can be written to a connection whose TLS handshake failed.
  if (/^(ERR_SSL|ERR_TLS|EPROTO)/.test(error.code ?? '')) socket.destroy()
  if (socket.destroyed || !socket.writable) return
  const id = newId('req')
  const large = error.code === 'HPE_HEADER_OVERFLOW'
  const status = large
    ? '431 Request Header Fields Too Large'
    : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? '408 Request Timeout'
      : '400 Bad Request'
  const body = JSON.stringify({
    error: {
      code: 'invalid_value',
      message: large
        ? 'The request headers are larger than 16 KiB.'
        : 'This is not a well-formed HTTP request, or it was not sent in time.',
      type: 'invalid_request_error',
      param: null,
      request_id: id,
    },
  })
  socket.end(
    `HTTP/1.1 ${status}\r\nx-request-id: ${id}\r\nx-content-type-options: nosniff\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}
