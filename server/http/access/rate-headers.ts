import type { Caller } from '../../../core/accounts/accounts.ts'
import type { Allowance, Entry } from '../../../core/accounts/limiter.ts'
import type { RateBucket } from '../../../core/accounts/plans.ts'

/** The parts of the headers that are the same for all requests of a caller. */
interface CallerHeaders {
  policy: Record<RateBucket, string>
  /** Identifies the limits of the token: a byte sequence (RFC 9651). */
  partition: string
}

const known = new WeakMap<Caller, CallerHeaders>()

/** The values of `caller` are computed once while it is cached: each request needs them. */
function headersOf(caller: Caller) {
  const before = known.get(caller)
  if (before) return before
  const { limits, token } = caller
  const partition = `;pk=:${Buffer.from(token.originId).toString('base64')}:`
  const policies = (bucket: RateBucket) => {
    const field = bucket === 'jobs' ? 'jobsPerMinute' : 'requestsPerMinute'
    const perToken = token.limits[field] ?? 0
    return [
      ...(limits[field] > 0 ? [`"${bucket}";q=${limits[field]};w=60`] : []),
      ...(perToken > 0 ? [`"token-${bucket}";q=${perToken};w=60${partition}`] : []),
    ]
  }
  const [api, jobs] = [policies('api'), policies('jobs')]
  const made = { policy: { api: [...api, ...jobs].join(', '), jobs: [...jobs, ...api].join(', ') }, partition }
  known.set(caller, made)
  return made
}

/** The limit that will refuse first: the one with the least left, and of equals the one that is full again last. */
function tightest(a: Allowance, b: Allowance) {
  if (a.limit === 0 || b.limit === 0) return a.limit === 0 ? b : a
  if (a.remaining !== b.remaining) return a.remaining < b.remaining ? a : b
  return a.resetMs >= b.resetMs ? a : b
}

function add(headers: string[], unit: 'requests' | 'tokens', { limit, remaining, resetMs }: Allowance) {
  if (limit === 0) return
  headers.push(
    `x-ratelimit-limit-${unit}`,
    String(limit),
    `x-ratelimit-remaining-${unit}`,
    String(remaining),
    `x-ratelimit-reset-${unit}`,
    durationText(resetMs),
  )
}

/**
 * The headers that describe the rate limits of a caller, flat: OpenAI's `x-ratelimit-*` for the tightest limit that the
 * request counted against, and the structured fields of draft-ietf-httpapi-ratelimit-headers for all of them. Empty for
 * a caller without rate limits.
 */
export function rateHeaders(
  bucket: RateBucket,
  caller: Caller,
  { organization, token, parent }: Pick<Entry, 'organization' | 'token' | 'parent'>,
  tokens: Record<'organization' | 'token', Allowance>,
): string[] {
  const headers: string[] = []
  const { policy, partition } = headersOf(caller)
  if (policy[bucket] !== '') headers.push('ratelimit-policy', policy[bucket])
  add(headers, 'requests', tightest(tightest(organization, token), parent))
  const ofOrganization = organization.limit > 0 ? `"${bucket}"${stateOf(organization)}` : ''
  const ofToken = token.limit > 0 ? `"token-${bucket}"${stateOf(token)}${partition}` : ''
  const between = ofOrganization !== '' && ofToken !== '' ? ', ' : ''
  const states = ofOrganization + between + ofToken
  if (states !== '') headers.push('ratelimit', states)
  add(headers, 'tokens', tightest(tokens.organization, tokens.token))
  return headers
}

const stateOf = ({ remaining, resetMs }: Allowance) => `;r=${remaining};t=${Math.ceil(resetMs / 1000)}`

/** Formats a duration as OpenAI's headers do: `120ms`, `6s`, `1m30s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)}ms`
  const seconds = Math.ceil(ms / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}
