import { open } from 'node:fs/promises'
import type { Agent } from 'undici'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Config } from '../models/config.ts'
import { checkedLookup, checkedUrl, portOf, type Resolve, resolveAll, UrlRefused, urlRules } from './checked-url.ts'

interface FetchOptions {
  organizationId: string
  url: string
  /** Maximum size of the body. */
  maxBytes: number
  signal?: AbortSignal
}

interface FetcherOptions {
  media: Pick<Config['media'], 'allowed_hosts' | 'allowed_addresses'>
  log: Log
  resolve?: Resolve
  /** Ports that it may connect to; addresses in `allowed_addresses` are allowed on any port. */
  ports?: readonly number[]
  connectMs?: number
  totalMs?: number
}

/** An allowed server answered without the file. Its message is for the caller; it tells nothing about a network. */
class NoFile extends Error {}

/** The body is larger than `maxBytes`. A separate error, because the caller can send a smaller file. */
export class MediaTooLarge extends Error {}

const redirects = 3

/**
 * Fetches URLs of callers; nothing else does. These rules apply to the URL and to every redirect: http or https, no
 * redirect from https to http, no user name, ports 80 and 443, only public addresses. A name is resolved once, all its
 * addresses must be allowed, and the connection goes to one of them, so that a second DNS answer cannot change the target.
 * The request has no cookies, no credentials and nothing about the caller. All errors have the same message, except what
 * a server that may be connected to did instead of sending the file.
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

  /** Makes an agent for one connection, to an address that is checked. */
  async function agentFor(url: URL): Promise<Agent> {
    const { Agent } = await import('undici')
    return new Agent({
      connections: 1,
      pipelining: 0,
      allowH2: false,
      connect: { timeout: connectMs, lookup: checkedLookup(portOf(url), rules, resolve) },
    })
  }

  /** Reads the answer to its end; resolves with the location if it is a redirect. */
  async function request(
    url: URL,
    options: FetchOptions,
    deadline: AbortSignal,
    onPiece: (piece: Uint8Array) => unknown,
  ) {
    const agent = await agentFor(url)
    const signal = options.signal ? AbortSignal.any([deadline, options.signal]) : deadline
    let connected = false
    agent.on('connect', () => (connected = true))
    try {
      const { statusCode, headers, body } = await agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: 'GET',
        headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'infer' },
        signal,
      })
      // Destroying the agent before the answer was read makes the body emit an error, which is expected.
      body.on('error', () => {})
      const location = headers.location
      if ([301, 302, 303, 307, 308].includes(statusCode) && typeof location === 'string') return location
      if (statusCode !== 200) throw new NoFile(answeredWith(statusCode))
      const encoding = headers['content-encoding'] ?? 'identity'
      if (encoding !== 'identity')
        throw new NoFile(
          'The server of the URL compresses the file although it was asked not to. Send the file itself.',
        )
      await read(piecesOf(body, signal), Number(headers['content-length'] ?? 0), options.maxBytes, onPiece)
      return undefined
    } catch (cause) {
      if (connected && cause === deadline.reason)
        throw new NoFile(
          `The server of the URL did not send the whole file within ${totalMs / 1000} seconds. Send the file itself, or a URL of a faster server.`,
          { cause },
        )
      throw cause
    } finally {
      // Not awaited: closing the connection may take long, and nothing depends on it.
      void agent.destroy().catch(() => {})
    }
  }

  async function follow(
    options: FetchOptions,
    deadline: AbortSignal,
    onPiece: (piece: Uint8Array) => unknown,
  ): Promise<void> {
    let url = checkUrl(options.url)
    for (let followed = 0; ; followed++) {
      const next = await request(url, options, deadline, onPiece)
      if (next === undefined) return
      if (followed === redirects) throw new UrlRefused('redirects')
      url = checkUrl(next, url)
    }
  }

  return {
    /**
     * Fetches a URL and calls `onPiece` with each piece of the body; a promise that it returns is awaited. Rejects with
     * Failure `url_fetch_failed`, with MediaTooLarge, or with the reason of the signal in `options`.
     */
    async fetch(options: FetchOptions, onPiece: (piece: Uint8Array) => unknown): Promise<void> {
      try {
        await follow(options, AbortSignal.timeout(totalMs), onPiece)
      } catch (cause) {
        options.signal?.throwIfAborted()
        if (cause instanceof MediaTooLarge || cause instanceof Failure) throw cause
        log.info('The URL of a caller was not fetched', {
          organization_id: options.organizationId,
          host: hostOf(options.url),
          why: causeOf(cause),
        })
        throw new Failure('url_fetch_failed', cause instanceof NoFile ? cause.message : fetchRefusal, { cause })
      }
    },
  }
}

export const fetchRefusal =
  'The URL could not be fetched. It must be a public http or https URL that answers with the file itself within 10 seconds.'

/** What a server answered instead of the file, and what to do. */
function answeredWith(status: number): string {
  const answered = `The server of the URL answered with status ${status}`
  if (status === 401 || status === 403)
    return `${answered}: it refuses the file. Send a URL that needs no login and has not expired, or the file itself.`
  if (status === 404 || status === 410) return `${answered}: there is no such file. Correct the URL.`
  if (status === 429) return `${answered}: it got too many requests. Try again later, or send the file itself.`
  return `${answered} instead of the file. Try again later, or send the file itself.`
}

/** The pieces of a body. Throws NoFile if the connection ends before it does. */
async function* piecesOf(body: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncIterable<Uint8Array> {
  try {
    yield* body
  } catch (cause) {
    if (signal.aborted) throw cause
    throw new NoFile(
      'The server of the URL ended the connection before it had sent the whole file. Try again, or send the file itself.',
      { cause },
    )
  }
}

async function read(
  body: AsyncIterable<Uint8Array>,
  announced: number,
  maxBytes: number,
  onPiece: (piece: Uint8Array) => unknown,
): Promise<void> {
  if (announced > maxBytes) throw new MediaTooLarge()
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.byteLength
    if (bytes > maxBytes) throw new MediaTooLarge()
    await onPiece(piece)
  }
  if (bytes === 0) throw new UrlRefused('empty')
}

const hostOf = (text: string): string | undefined => (URL.canParse(text) ? new URL(text).hostname : undefined)
const causeOf = (cause: unknown): string =>
  cause instanceof Error ? `${(cause as NodeJS.ErrnoException).code ?? cause.name}: ${cause.message}` : String(cause)

interface DownloadOptions {
  media: Pick<Config['media'], 'allowed_hosts' | 'allowed_addresses'>
  log: Log
}

interface DownloadedFile extends FetchOptions {
  /** Path of the new file. */
  path: string
}

/** Time for one file. Outputs of engines are larger than media of requests. */
const totalMs = 120_000

/**
 * Downloads files that engines name by URL. The rules are those for URLs of callers, because an engine may have the URL
 * from a prompt. Rejects with Failure `url_fetch_failed`, or with the reason of the signal.
 */
export function openDownload({ media, log }: DownloadOptions) {
  const fetcher = openFetcher({ media, log, totalMs })
  return async ({ path, ...options }: DownloadedFile): Promise<void> => {
    await using file = await open(path, 'wx', 0o600)
    try {
      await fetcher.fetch(options, piece => file.appendFile(piece))
    } catch (thrown) {
      throw thrown instanceof MediaTooLarge ? new Failure('url_fetch_failed', fetchRefusal) : thrown
    }
  }
}
