import { lookup as lookUp } from 'node:dns'
import type { Agent, Dispatcher } from 'undici'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Config } from '../models/config.ts'
import { checkedUrl, mayReach, portOf, UrlRefused, urlRules } from './checked-url.ts'

export interface Answer {
  address: string
  family: number
}
/** All addresses of a name; `dns.lookup` with `all`. */
export type Resolve = (name: string, done: (cause: Error | null, answers: Answer[]) => void) => void

export interface FetchOptions {
  organizationId: string
  url: string
  /** Of the body. */
  maxBytes: number
  signal?: AbortSignal
}

interface FetcherOptions {
  media: Pick<Config['media'], 'allowed_hosts' | 'allowed_addresses'>
  log: Log
  resolve?: Resolve
  /** Where it may connect to; those of `allowed_addresses` may be reached on any port. */
  ports?: readonly number[]
  connectMs?: number
  totalMs?: number
}

/** The body is larger than what was asked for; told apart because the caller can do something about it. */
export class TooLarge extends Error {}

const redirects = 3
const resolveAll: Resolve = (name, done) => lookUp(name, { all: true }, done)

/**
 * The one way in which anything is fetched from an address that a caller sent. Rules, each for every redirect too: http
 * or https, never down from https, no user name, ports 80 and 443, only public addresses. A name is resolved once, all
 * its answers must be allowed, and the connection goes to one of those: so no second answer can lead elsewhere. Nothing
 * of ours is sent along: no cookies, no credentials, no trace of the caller. One message for whatever goes wrong.
 */
export function openFetcher({
  media,
  log,
  resolve = resolveAll,
  ports = [80, 443],
  connectMs = 5_000,
  totalMs = 10_000,
}: FetcherOptions) {
  const rules = urlRules(media, ports)
  const checkUrl = (text: string, from?: URL) => checkedUrl(text, from, rules)

  /** One connection, to an address that was looked at. */
  async function agentFor(url: URL): Promise<Agent> {
    const { Agent } = await import('undici')
    return new Agent({
      connections: 1,
      pipelining: 0,
      allowH2: false,
      connect: {
        timeout: connectMs,
        lookup(name, _options, done) {
          resolve(name, (cause, answers) => {
            if (cause) return done(cause, [])
            const wrong = answers.length === 0 || answers.some(({ address }) => !mayReach(address, portOf(url), rules))
            return wrong ? done(new UrlRefused('address'), []) : done(null, answers)
          })
        },
      },
    })
  }

  /** The answer, read to its end; or where it sends us. */
  async function ask(url: URL, options: FetchOptions, signal: AbortSignal, taken: (piece: Uint8Array) => unknown) {
    const agent = await agentFor(url)
    try {
      const { statusCode, headers, body } = await agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: 'GET',
        headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'infer' },
        signal,
      })
      // The rest of an answer that is given up comes as an error, of which nobody has to hear.
      body.on('error', () => {})
      const location = headers.location
      if ([301, 302, 303, 307, 308].includes(statusCode) && typeof location === 'string') return location
      if (statusCode !== 200) throw new UrlRefused(`status ${statusCode}`)
      if ((headers['content-encoding'] ?? 'identity') !== 'identity') throw new UrlRefused('content encoding')
      await read(body, Number(headers['content-length'] ?? 0), options.maxBytes, taken)
      return undefined
    } finally {
      // Not waited for: a connection on its way ends in its own time, and nobody waits for what it brings.
      void agent.destroy().catch(() => {})
    }
  }

  async function follow(
    options: FetchOptions,
    signal: AbortSignal,
    taken: (piece: Uint8Array) => unknown,
  ): Promise<void> {
    let url = checkUrl(options.url)
    for (let followed = 0; ; followed++) {
      const next = await ask(url, options, signal, taken)
      if (next === undefined) return
      if (followed === redirects) throw new UrlRefused('redirects')
      url = checkUrl(next, url)
    }
  }

  return {
    /**
     * Fetches and hands the body over piece by piece; `taken` may return a promise that is waited for. Rejects with
     * Failure `url_fetch_failed`, with TooLarge, or with the reason of the order's own signal.
     */
    async fetch(options: FetchOptions, taken: (piece: Uint8Array) => unknown): Promise<void> {
      const deadline = AbortSignal.timeout(totalMs)
      const signal = options.signal ? AbortSignal.any([deadline, options.signal]) : deadline
      try {
        await follow(options, signal, taken)
      } catch (cause) {
        options.signal?.throwIfAborted()
        if (cause instanceof TooLarge || cause instanceof Failure) throw cause
        log.info('An address that a caller sent was not fetched', {
          organization_id: options.organizationId,
          host: hostOf(options.url),
          why: causeOf(cause),
        })
        throw new Failure('url_fetch_failed', fetchRefusal, { cause })
      }
    },
  }
}
export type Fetcher = ReturnType<typeof openFetcher>

export const fetchRefusal =
  'The address could not be fetched. It must be a public http or https address that answers with the file itself within 10 seconds.'

async function read(
  body: Dispatcher.ResponseData['body'],
  announced: number,
  maxBytes: number,
  taken: (piece: Uint8Array) => unknown,
): Promise<void> {
  if (announced > maxBytes) throw new TooLarge()
  let bytes = 0
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    bytes += piece.byteLength
    if (bytes > maxBytes) throw new TooLarge()
    await taken(piece)
  }
  if (bytes === 0) throw new UrlRefused('empty')
}

const hostOf = (text: string): string | undefined => (URL.canParse(text) ? new URL(text).hostname : undefined)
const causeOf = (cause: unknown): string =>
  cause instanceof Error ? `${(cause as NodeJS.ErrnoException).code ?? cause.name}: ${cause.message}` : String(cause)
