import { X509Certificate } from 'node:crypto'
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { request as secureRequest } from 'node:https'
import type { Readable } from 'node:stream'
import type { ConnectionOptions as TlsOptions } from 'node:tls'

export interface Sent {
  method: string
  url: string
  /** Undefined for an address that is signed. */
  token: string | undefined
  /** JSON as text; or any bytes, whose type and length stand in `headers`. */
  body?: string | Readable | undefined
  headers?: Record<string, string> | undefined
  signal: AbortSignal | undefined
  /** A connection on which nothing moves for this long is dead. Milliseconds; for ever when left out. */
  silenceMs?: number | undefined
  /** PEM: the one certificate that is accepted from an https server, whatever names are in it. */
  certificate?: string | undefined
}

/**
 * One request; resolves with the head of the answer, whose body is still to be read. Follows no redirect, so that a
 * token never reaches another host. Node's own client and not fetch, which refuses some hundred port numbers.
 * Rejects with the error of the system, or the signal's reason.
 */
export function send({
  method,
  url,
  token,
  body,
  headers: more,
  signal,
  silenceMs,
  certificate,
}: Sent): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      accept: 'application/json, text/event-stream',
      ...more,
      ...(typeof body === 'string'
        ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
        : {}),
    }
    const request = url.startsWith('https:') ? secureRequest : plainRequest
    const pinned = certificate === undefined ? {} : pinnedTo(certificate)
    const sending = request(url, { method, headers, agent: false, ...pinned, ...(signal ? { signal } : {}) }, resolve)
    sending.on('error', reject)
    if (silenceMs !== undefined)
      sending.setTimeout(silenceMs, () => sending.destroy(new Error(`nothing came for ${silenceMs / 1000} s`)))
    if (typeof body === 'object') body.on('error', cause => sending.destroy(cause)).pipe(sending)
    else sending.end(body)
  })
}

/**
 * Options of a connection that accepts this certificate only. A server on this machine is known by its certificate and
 * not by its name: one of the operator's does not name 127.0.0.1, and a self-signed one has no authority behind it.
 */
function pinnedTo(certificate: string): TlsOptions {
  const { fingerprint256, raw } = new X509Certificate(certificate)
  return {
    // The first of a chain is enough.
    ca: `-----BEGIN CERTIFICATE-----\n${raw.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    allowPartialTrustChain: true,
    checkServerIdentity: (_, peer) =>
      peer.fingerprint256 === fingerprint256
        ? undefined
        : new Error('it has another certificate than the server that was started here'),
  }
}

/** The whole body as text. Rejects when it is longer than `most` bytes or breaks off. */
export async function readText(message: IncomingMessage, most: number): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of message as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > most) throw new Error(`it is longer than ${most} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
