import { X509Certificate } from 'node:crypto'
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { request as secureRequest } from 'node:https'
import type { Duplex, Readable } from 'node:stream'
import type { ConnectionOptions as TlsOptions } from 'node:tls'
import { createParser } from 'eventsource-parser'
import { Failure } from '../../core/failure.ts'

interface SendOptions {
  method: string
  url: string
  /** Undefined for a signed URL. */
  token: string | undefined
  /** JSON text, or bytes whose type and length are in `headers`. */
  body?: string | Readable | undefined
  headers?: Record<string, string> | undefined
  signal: AbortSignal | undefined
  /** Maximum time without any byte before the connection counts as lost. Milliseconds; no limit when omitted. */
  silenceMs?: number | undefined
  /** PEM: the only certificate that is accepted from an https server, whatever names it contains. */
  certificate?: string | undefined
  /** Opens the connection, in place of a socket to the host of the URL. */
  connect?: (() => Duplex) | undefined
}

/**
 * Sends one request and resolves with the response before its body is read. Follows no redirect, so that a token never
 * reaches another host. Uses Node's own client, because fetch refuses about a hundred port numbers. Rejects with the
 * system error or the signal's reason.
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
  connect,
}: SendOptions): Promise<IncomingMessage> {
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
    const options = { method, headers, ...pinned, signal }
    const sending = request(
      url,
      { ...options, ...(connect ? { createConnection: connect } : { agent: false }) },
      resolve,
    )
    sending.on('error', reject)
    if (silenceMs !== undefined)
      sending.setTimeout(silenceMs, () => sending.destroy(new Error(`no data arrived for ${silenceMs / 1000} s`)))
    if (typeof body === 'object') body.on('error', cause => sending.destroy(cause)).pipe(sending)
    else sending.end(body)
  })
}

/**
 * Returns TLS options that accept this certificate only. A server on this machine is identified by its certificate, not
 * by its name: an operator's certificate does not contain 127.0.0.1, and no authority signs a self-signed one.
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
        : new Error('its certificate is not that of the server on this machine'),
  }
}

/** Reads the complete body as text. Rejects when it is longer than `maxBytes` or the connection is lost. */
export async function readText(message: IncomingMessage, maxBytes: number): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of message as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

/** A server-sent event: its name (default `message`), and its data lines joined by newlines. */
export interface SseEvent {
  event: string
  data: string
}

/**
 * Parses server-sent events from bytes in chunks of any size, whose lines end with LF or CRLF, as infer's do. Throws
 * Failure `worker_error` when one event is longer than `maxLength` characters.
 */
export function openSseParser(maxLength = 8 << 20) {
  const decoder = new TextDecoder()
  let events: SseEvent[] = []
  const parser = createParser({
    maxBufferSize: maxLength,
    // A message without a type is one of the default type.
    onEvent: ({ event, data }) => events.push({ event: event || 'message', data }),
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded')
        throw new Failure(
          'worker_error',
          `The server sent an event of more than ${maxLength} characters, so the answer was stopped.`,
        )
    },
  })
  return {
    feed(bytes: Uint8Array): SseEvent[] {
      events = []
      parser.feed(decoder.decode(bytes, { stream: true }))
      return events
    },
  }
}
