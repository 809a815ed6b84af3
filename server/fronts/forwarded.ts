import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { EngineEnd } from '../../core/jobs/suspects.ts'
import { type Peer, peerOf, setPeer } from '../http/connection/peer.ts'
import { setEngineEnd } from '../http/request/engine-end.ts'

/** What a front did with a request before it passed it on. */
export interface Tried {
  /** What it has read of the body. */
  body?: Buffer | undefined
  /** How the engine ended on which it ran there. */
  engineEnd?: EngineEnd | undefined
}

/**
 * The header that a front adds first: the secret of this start, HTTP version, `tls` or `plain`, and the client's address; then
 * how its engine ended, if one did: its id, how many other requests ran there, and for how many milliseconds this one ran.
 */
const header = 'x-infer-front'

/** Headers that are about one connection, and not about the request or response. */
const ofConnection = /^(?:connection|keep-alive|transfer-encoding|x-infer-front)$/i

/** Returns headers without those of the connection, flat. `keep` names one that stays. */
export function endToEnd(rawHeaders: readonly string[], keep?: string): string[] {
  const headers: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (!ofConnection.test(name) || name.toLowerCase() === keep) headers.push(name, rawHeaders[at + 1]!)
  }
  return headers
}

/** Returns the headers with which a front passes a request on, flat. */
export function forwardedHeaders(req: IncomingMessage, secret: string, engineEnd?: EngineEnd): string[] {
  const { remoteAddress = '', encrypted } = peerOf(req)
  const facts = [secret, req.httpVersion, encrypted ? 'tls' : 'plain', remoteAddress]
  if (engineEnd) facts.push(engineEnd.engineId, String(engineEnd.othersAtEnd), String(engineEnd.ranMs))
  // Node sends a body in chunks if this header says so.
  const chunked = req.headers['transfer-encoding'] === undefined ? [] : ['transfer-encoding', 'chunked']
  // First, where no number of headers can push it out.
  return [header, facts.join(' '), ...endToEnd(req.rawHeaders), ...chunked]
}

/**
 * Makes a request that a front has passed on look as if its client were connected here. Returns whether it knew the
 * secret; the request of any other program must not be answered.
 */
export function acceptForwarded(req: IncomingMessage, secret: string): boolean {
  const { rawHeaders } = req
  if (rawHeaders[0] !== header) return false
  const [given = '', version = '1.1', security, remoteAddress = '', engineId, others, ran] = rawHeaders[1]!.split(' ')
  if (!isSame(given, secret)) return false
  rawHeaders.splice(0, 2)
  delete req.headers[header]
  req.httpVersion = version
  const peer: Peer = { remoteAddress: remoteAddress || undefined, encrypted: security === 'tls' }
  setPeer(req, peer)
  if (engineId) setEngineEnd(req, { engineId, othersAtEnd: Number(others), ranMs: Number(ran) })
  return true
}

function isSame(given: string, secret: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(secret)]
  return a.length === b.length && timingSafeEqual(a, b)
}
