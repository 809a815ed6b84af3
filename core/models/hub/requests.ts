import { setTimeout as pause } from 'node:timers/promises'
import { version } from '../../assets.ts'
import { Failure } from '../../failure.ts'
import type { HubSettings } from './settings.ts'

/** How long a download bears with a bad connection. Milliseconds. */
export interface RetryRules {
  /** Tries without one new byte between them before it gives up. */
  attempts: number
  /** The pause after the first of them; doubles with each. */
  backoffMs: number
  /** Without an answer or a byte for this long the connection is taken for dead. */
  silenceMs: number
}

export const defaultRetryRules: RetryRules = { attempts: 6, backoffMs: 1_000, silenceMs: 30_000 }

/** No server is waited for longer than this between two tries, whatever it says. */
const longestRestMs = 300_000

/** An answer that is good, and the timer that ends it when it falls silent. */
export interface HubResponse {
  response: Response
  /** To be called with every piece that arrives. */
  received: () => void
  done: () => void
}

export type HubFetch = (url: string, headers?: Record<string, string>) => Promise<HubResponse>

/**
 * Requests to a hub, or to any address. The token goes to the hub's own origin only, never to what it redirects or
 * links to. Throws Failure: retryable for what may work in a moment, else with what the operator can do about it.
 * `repository` is what messages call what is asked for.
 */
export function openRequests({
  hub,
  repository,
  silenceMs,
  signal,
}: {
  hub: HubSettings
  repository: string
  silenceMs: number
  signal: AbortSignal
}): HubFetch {
  const origin = new URL(hub.endpoint).origin
  return async (url, headers = {}) => {
    signal.throwIfAborted()
    const target = new URL(url)
    if (hub.offline)
      throw new Failure('invalid_value', `HF_HUB_OFFLINE is set, so nothing is asked of ${target.host}. Unset it.`)
    const silence = new AbortController()
    const quiet = new Failure('timeout', `${target.host} has sent nothing for ${Math.round(silenceMs / 1000)} s.`)
    const timer = setTimeout(() => silence.abort(quiet), silenceMs)
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
      throw cause === quiet ? quiet : unreachable(target, cause)
    }
    const done = () => clearTimeout(timer)
    if (target.protocol === 'https:' && response.url.startsWith('http:')) {
      done()
      await response.body?.cancel()
      throw new Failure('invalid_value', `${target.host} redirects to ${response.url}, which is not encrypted.`)
    }
    if (response.ok) return { response, received: () => void timer.refresh(), done }
    done()
    const errorText = await words(response)
    throw refusalOf(response.status, {
      reason: response.headers.get('x-error-code'),
      retryAfter: Number(response.headers.get('retry-after') ?? Number.NaN),
      errorText,
      host: target.host,
      atHub: target.origin === origin,
      repository,
      page: `${hub.endpoint}/${repository}`,
      hasToken: hub.token !== undefined,
    })
  }
}

/** What an answer that is not 2xx means. */
export function refusalOf(
  status: number,
  about: {
    /** The hub's own name of the reason, from X-Error-Code. */
    reason: string | null
    /** Seconds; NaN when not said. */
    retryAfter: number
    errorText: string
    host: string
    atHub: boolean
    repository: string
    page: string
    hasToken: boolean
  },
): Failure {
  const { reason, errorText, host, atHub, repository, page, hasToken } = about
  const give = 'Give a token with HF_TOKEN or --token-file'
  if (atHub && (reason === 'GatedRepo' || (status === 403 && /gated|access to model/i.test(errorText))))
    return new Failure(
      'model_not_allowed',
      hasToken
        ? `${repository} is gated, and the account of your token has no access yet. Accept its licence at ${page}, then run the same command again.`
        : `${repository} is gated: accept its licence at ${page}, then ${give.charAt(0).toLowerCase()}${give.slice(1)}.`,
    )
  if (atHub && (reason === 'RepoNotFound' || (status === 401 && !hasToken)))
    return new Failure(
      'model_not_found',
      `There is no repository ${repository} on ${host}, or it is private.${hasToken ? '' : ` ${give} if it is yours.`}`,
    )
  if (reason === 'RevisionNotFound')
    return new Failure('model_not_found', `The repository ${repository} has no such revision: ${errorText || status}.`)
  if (status === 401)
    return new Failure(
      'invalid_api_key',
      `${host} does not accept the token. Make a new one at ${about.page.split('/').slice(0, 3).join('/')}/settings/tokens.`,
    )
  if (status === 403)
    return new Failure('model_not_allowed', `${host} does not give you ${repository}: ${errorText || status}.`)
  if (status === 404 || status === 410) return new Failure('model_not_found', `There is no ${repository} on ${host}.`)
  if (status === 429)
    return new Failure('rate_limit', `${host} has had too many requests from this machine.`, {
      retryAfterMs: Number.isFinite(about.retryAfter) ? about.retryAfter * 1000 : 10_000,
    })
  if (status >= 500 || status === 408)
    return new Failure(
      'worker_error',
      `${host} is in trouble: it answered ${status}${errorText ? ` (${errorText})` : ''}.`,
    )
  return new Failure(
    'invalid_value',
    `${host} refused the request for ${repository}: ${status}${errorText ? ` (${errorText})` : ''}.`,
  )
}

/** Whether trying again may help. A full disk may be emptied too, but not within seconds. */
export const isTransient = ({ code }: Failure): boolean =>
  code === 'worker_error' || code === 'timeout' || code === 'rate_limit'

/** Runs something that can be run again, until it works or there is no sense in trying. */
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

/** Waits before the next try, as long as the server wishes or longer each time. */
export async function waitBeforeRetry(
  failure: Failure,
  attempt: number,
  { retryRules, signal }: { retryRules: RetryRules; signal: AbortSignal },
): Promise<void> {
  await pause(retryDelayMs(failure, attempt, retryRules), undefined, { signal }).catch(() => signal.throwIfAborted())
}

export const retryDelayMs = (failure: Failure, attempt: number, { backoffMs }: RetryRules): number =>
  Math.min(failure.retryAfterMs ?? backoffMs * 2 ** (attempt - 1), longestRestMs)

/** A connection that was refused, broke, or never came about. */
export class ConnectionFailure extends Failure {
  /** As the system says it, without a full stop. */
  readonly reason: string

  constructor(target: URL, reason: string, cause: unknown) {
    super('worker_error', `The connection to ${target.host} failed: ${reason}.`, { cause })
    this.reason = reason
  }
}

/** What went wrong below HTTP, as a Failure. */
export function unreachable(target: URL, thrown: unknown): Failure {
  let cause = thrown
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  const errorText = cause instanceof Error ? cause.message : String(cause)
  return new ConnectionFailure(target, errorText, thrown)
}

/** The beginning of what an answer says, on one line. */
async function words(response: Response): Promise<string> {
  const text = await response.text().catch(() => '')
  let errorText: unknown = text
  try {
    errorText = (JSON.parse(text) as { error?: unknown }).error ?? text
  } catch {
    // A page for people.
    if (/^\s*</.test(text)) return ''
  }
  return String(errorText)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, 200)
}
