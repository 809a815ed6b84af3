import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setTimeout as pause } from 'node:timers/promises'
import { version } from '../../assets.ts'
import { Failure, invalidValue } from '../../failure.ts'
import { parseRetryAfter } from '../../retry-after.ts'
import { untrustedCertificate } from '../../untrusted-certificate.ts'
import type { HubSettings } from './settings.ts'

/** How a download handles a bad connection. Times in milliseconds. */
export interface RetryRules {
  /** Attempts without a new byte before the download fails. */
  attempts: number
  /** The pause after the first attempt; it doubles with each further one. */
  backoffMs: number
  /** The connection counts as broken after this time without an answer or a byte. */
  silenceMs: number
}

export const defaultRetryRules: RetryRules = { attempts: 6, backoffMs: 1_000, silenceMs: 30_000 }

/** Maximum pause between two attempts, even if the server asks for a longer one. */
const maxDelayMs = 300_000

/** A successful response. A timer aborts it when the server sends nothing for `silenceMs`. */
export interface HubResponse {
  response: Response
  /** Call this for every piece that arrives: it restarts the timer. */
  received: () => void
  done: () => void
}

export type HubFetch = (url: string, headers?: Record<string, string>) => Promise<HubResponse>

/**
 * Opens requests to a hub or to any URL. The token is sent only to the hub's own origin, never to the target of a redirect
 * or link. Requests reject with a retryable Failure for temporary errors, else with a Failure that says what to do.
 * `repository` is the name of the requested model in messages.
 */
function openRequests(options: {
  hub: HubSettings
  repository: string
  silenceMs: number
  signal: AbortSignal
}): HubFetch {
  const { hub, repository, silenceMs, signal } = options
  const origin = new URL(hub.endpoint).origin
  return async (url, headers = {}) => {
    signal.throwIfAborted()
    const target = new URL(url)
    if (hub.offline)
      throw invalidValue(`HF_HUB_OFFLINE is set, so no request is sent to ${target.host}. Unset it to download.`)
    const silence = new AbortController()
    const timeout = new Failure('timeout', `${target.host} has sent nothing for ${Math.round(silenceMs / 1000)} s.`)
    const timer = setTimeout(() => silence.abort(timeout), silenceMs)
    let response: Response
    try {
      response = await fetch(target, {
        headers: {
          'user-agent': `infer/${version}`,
          'accept-encoding': 'identity',
          ...headers,
          ...(hub.token !== undefined && target.origin === origin ? { authorization: `Bearer ${hub.token}` } : {}),
        },
        signal: AbortSignal.any([signal, silence.signal]),
      })
    } catch (cause) {
      clearTimeout(timer)
      signal.throwIfAborted()
      throw cause === timeout ? timeout : hubUnreachable(target, cause)
    }
    const done = () => clearTimeout(timer)
    if (target.protocol === 'https:' && response.url.startsWith('http:')) {
      done()
      await response.body?.cancel()
      throw invalidValue(`${target.host} redirects to ${response.url}, which is not encrypted.`)
    }
    if (response.ok) return { response, received: () => void timer.refresh(), done }
    done()
    const errorText = await errorTextOf(response)
    throw refusalOf(response.status, {
      reason: response.headers.get('x-error-code'),
      retryAfterMs: parseRetryAfter(response.headers.get('retry-after') ?? undefined, Date.now()),
      errorText,
      host: target.host,
      atHub: target.origin === origin,
      repository,
      page: `${hub.endpoint}/${repository}`,
      hasToken: hub.token !== undefined,
      resumes: headers.range !== undefined && !headers.range.startsWith('bytes=0-'),
    })
  }
}

/** Returns the Failure for an answer that is not 2xx. */
function refusalOf(
  status: number,
  about: {
    /** The error code of the hub, from X-Error-Code. */
    reason: string | null
    /** Undefined if the answer has no Retry-After. */
    retryAfterMs: number | undefined
    errorText: string
    host: string
    atHub: boolean
    repository: string
    page: string
    hasToken: boolean
    /** Whether the rest of a file was requested. */
    resumes: boolean
  },
): Failure {
  const { reason, errorText, host, atHub, repository, page, hasToken } = about
  const passToken = 'Pass a token with HF_TOKEN or --token-file'
  if (atHub && (reason === 'GatedRepo' || (status === 403 && /gated|access to model/i.test(errorText))))
    return new Failure(
      'model_not_allowed',
      hasToken
        ? `${repository} is gated, and the account of your token has no access yet. Accept its licence at ${page}, then run the same command again.`
        : `${repository} is gated: accept its licence at ${page}, then ${passToken.charAt(0).toLowerCase()}${passToken.slice(1)}.`,
    )
  if (atHub && (reason === 'RepoNotFound' || (status === 401 && !hasToken)))
    return new Failure(
      'model_not_found',
      `There is no repository ${repository} on ${host}, or it is private.${hasToken ? '' : ` ${passToken} if it is yours.`}`,
    )
  if (reason === 'RevisionNotFound')
    return new Failure('model_not_found', `The repository ${repository} has no such revision: ${errorText || status}.`)
  if (status === 407) return loginOfProxy()
  if (status === 416 && about.resumes) return new RangeFailure(host)
  if (status === 401 && !hasToken)
    return new Failure(
      'invalid_api_key',
      `${host} wants a login (401), and infer sends none there. Download the file with another program, then add it: infer model add <file>`,
    )
  if (status === 401)
    return new Failure(
      'invalid_api_key',
      `${host} does not accept the token. Create a new one at ${about.page.split('/').slice(0, 3).join('/')}/settings/tokens.`,
    )
  if (status === 403)
    return new Failure('model_not_allowed', `${host} denies access to ${repository}: ${errorText || status}.`)
  if (status === 404 || status === 410) return new Failure('model_not_found', `There is no ${repository} on ${host}.`)
  if (status === 429)
    return new Failure('rate_limit', `${host} has received too many requests from this machine.`, {
      retryAfterMs: about.retryAfterMs ?? 10_000,
    })
  if (status >= 500 || status === 408)
    return new Failure(
      'worker_error',
      `${host} has an error: it answered ${status}${errorText ? ` (${errorText})` : ''}.`,
    )
  return invalidValue(`${host} refused the request for ${repository}: ${status}${errorText ? ` (${errorText})` : ''}.`)
}

/** Whether a retry may succeed within seconds. */
export const isTransient = ({ code }: Failure): boolean =>
  code === 'worker_error' || code === 'timeout' || code === 'rate_limit'

/** Runs `run` until it succeeds, fails with an error that is not transient, or all attempts are used. */
export async function withRetries<T>(
  run: () => Promise<T>,
  { retryRules, signal }: { retryRules: RetryRules; signal: AbortSignal },
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (thrown) {
      signal.throwIfAborted()
      if (!(thrown instanceof Failure && isTransient(thrown)) || attempt >= retryRules.attempts) throw thrown
      await waitBeforeRetry(thrown, attempt, { retryRules, signal })
    }
  }
}

/** Waits before the next attempt: for the time that the server asks for, else longer each time. */
export async function waitBeforeRetry(
  failure: Failure,
  attempt: number,
  { retryRules, signal }: { retryRules: RetryRules; signal: AbortSignal },
): Promise<void> {
  await pause(retryDelayMs(failure, attempt, retryRules), undefined, { signal }).catch(() => signal.throwIfAborted())
}

export const retryDelayMs = (failure: Failure, attempt: number, { backoffMs }: RetryRules): number =>
  Math.min(failure.retryAfterMs ?? backoffMs * 2 ** (attempt - 1), maxDelayMs)

/** The server does not have the rest of a file any more that has arrived in part: it has changed. */
export class RangeFailure extends Failure {
  constructor(host: string) {
    super('worker_error', `The file has changed on ${host}, so it is downloaded from its beginning.`)
  }
}

/** A connection was refused, broke, or could not be established. */
export class ConnectionFailure extends Failure {
  /** The message of the system, without a full stop. */
  readonly reason: string

  constructor(target: URL, reason: string, cause: unknown) {
    super('worker_error', `The connection to ${target.host} failed: ${reason}.`, { cause })
    this.reason = reason
  }
}

const loginOfProxy = (): Failure =>
  invalidValue(
    'The proxy wants another login (407). Write it into HTTPS_PROXY and HTTP_PROXY, as http://NAME:PASSWORD@proxy:3128, with %40 for @ and %3A for : in it.',
  )

/** Turns an error below HTTP into a Failure, which is retryable unless somebody has to change something. */
export function hubUnreachable(target: URL, thrown: unknown): Failure {
  let cause = thrown
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  const errorText = cause instanceof Error ? cause.message : String(cause)
  if (/\(407\)/.test(errorText)) return loginOfProxy()
  if (errorText === 'redirect count exceeded')
    return invalidValue(`${target.host} redirects in a circle. Check the address ${target.origin}${target.pathname}.`)
  const untrusted = untrustedCertificate(target.host, cause)
  return untrusted ? invalidValue(untrusted, { cause: thrown }) : new ConnectionFailure(target, errorText, thrown)
}

/** Returns the beginning of an error answer on one line; empty for an HTML page. */
async function errorTextOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => '')
  let errorText: unknown = text
  try {
    errorText = (JSON.parse(text) as { error?: unknown }).error ?? text
  } catch {
    if (/^\s*</.test(text)) return ''
  }
  return String(errorText)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, 200)
}

/** Maximum time for the first connection, milliseconds. */
const connectWithinMs = 3_500
/** Attempts if the connection is refused or breaks at once, because a single error may be temporary. */
const maxAttempts = 3

/** Diagnostics channel on which Node's fetch announces a connection to the server or to the proxy. */
const connected = 'undici:client:connected'

/**
 * Opens the requests of one download from `target`. `first` runs the first of them, which shows whether there is a
 * network: without a connection it rejects within 5 s with Failure `no_capacity`, which names the proxy and the hub. Once
 * connected, the usual timeouts apply.
 */
export function openDownload(options: {
  target: URL
  hub: HubSettings
  repository: string
  retryRules: RetryRules
  signal: AbortSignal
  /** What else to do where there is no network, for the message. */
  instead?: string
}) {
  const { target, hub, repository, retryRules, signal } = options
  const { instead = 'Or download the file on another machine and add it with: infer model add <file>' } = options
  const cancel = new AbortController()
  const either = AbortSignal.any([signal, cancel.signal])
  const ask = openRequests({ hub, repository, silenceMs: retryRules.silenceMs, signal: either })
  async function first<T>(run: () => Promise<T>): Promise<T> {
    let isConnected = false
    const onConnected = () => {
      isConnected = true
      clearTimeout(timer)
    }
    const timer = setTimeout(
      () => cancel.abort(unreachable(target, hub, instead, `no connection within ${connectWithinMs / 1_000} s`)),
      connectWithinMs,
    )
    subscribe(connected, onConnected)
    // A connection to a proxy does not prove that the hub can be reached.
    const isUnreached = (thrown: unknown): thrown is ConnectionFailure =>
      thrown instanceof ConnectionFailure && (!isConnected || hub.proxy !== undefined)
    let failures = 0
    const once = async () => {
      try {
        return await run()
      } catch (thrown) {
        if (isUnreached(thrown) && ++failures >= maxAttempts)
          throw unreachable(target, hub, instead, thrown.reason, thrown)
        throw thrown
      }
    }
    try {
      return await withRetries(once, { retryRules, signal: either })
    } catch (thrown) {
      signal.throwIfAborted()
      // `retryRules` may allow fewer attempts than `maxAttempts`.
      throw isUnreached(thrown) ? unreachable(target, hub, instead, thrown.reason, thrown) : thrown
    } finally {
      clearTimeout(timer)
      unsubscribe(connected, onConnected)
    }
  }
  return { ask, first }
}

function unreachable(
  target: URL,
  { endpoint, proxy }: HubSettings,
  instead: string,
  reason: string,
  cause?: unknown,
): Failure {
  const isHub = target.origin === new URL(endpoint).origin
  const through =
    proxy === undefined
      ? 'No proxy is set (HTTPS_PROXY)'
      : `Requests go through the proxy ${proxy.address} (${proxy.variable})`
  const where = isHub ? ` HF_ENDPOINT, which names another hub, is ${endpoint}.` : ''
  return new Failure('no_capacity', `${target.host} cannot be reached: ${reason}. ${through}.${where} ${instead}`, {
    cause,
  })
}
