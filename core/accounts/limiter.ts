import { Failure } from '../failure.ts'
import { clientPart } from '../network-address.ts'
import type { Caller } from './accounts.ts'
import type { EffectiveLimits, RateBucket } from './plans.ts'

/** The state of one limit after a request was checked. Without a limit, `limit` is 0 and every request is allowed. */
export interface Allowance {
  allowed: boolean
  limit: number
  remaining: number
  /** Milliseconds until the bucket is full again. */
  resetMs: number
  /** Milliseconds until the next request is allowed; 0 if this one was. */
  retryAfterMs: number
}

/** What a bucket held at a time of the monotonic clock, milliseconds. */
export interface Level {
  tokens: number
  at: number
}

/**
 * What is in a token bucket that holds `perMinute` and refills evenly: the limit per minute also limits a burst. Negative
 * while a debt is repaid. Permits that are `lent` still fill the bucket: without them it holds so much less.
 */
export const refilled = (level: Level | undefined, perMinute: number, now: number, lent = 0): number =>
  level
    ? Math.min(perMinute - lent, level.tokens + (Math.max(0, now - level.at) * perMinute) / 60_000)
    : perMinute - lent

/**
 * Whether a bucket holds one more request. Sums of fractions miss whole numbers by rounding; a millionth of a request is
 * no reason to refuse one.
 */
export const isEnough = (tokens: number): boolean => tokens >= 1 - 1e-6

/** Describes a bucket that holds `tokens` after the check. */
export function allowanceOf(allowed: boolean, tokens: number, perMinute: number): Allowance {
  const perMs = perMinute / 60_000
  return {
    allowed,
    limit: perMinute,
    remaining: Math.max(0, Math.floor(tokens + 1e-6)),
    resetMs: Math.ceil((perMinute - tokens) / perMs),
    retryAfterMs: allowed ? 0 : Math.ceil((1 - tokens) / perMs - 1e-6),
  }
}

/** Of a bucket without a limit. */
export const unlimited: Allowance = { allowed: true, limit: 0, remaining: 0, resetMs: 0, retryAfterMs: 0 }

/** Milliseconds before a request that was refused because others are open should be sent again. */
const whileOthersRunMs = 1_000

/** Whose limit it is, in the order in which they are checked. */
export const limitOwners = ['token', 'organization'] as const
export type LimitOwner = (typeof limitOwners)[number]

/** The check of one request. */
export interface Entry {
  organization: Allowance
  token: Allowance
  /** Of the tokens that created the token: the one with the least left. */
  parent: Allowance
  /** Why the request is refused. */
  refused: Failure | undefined
  /** Call it once, when the request has ended. */
  leave: () => void
}

/** The caller's facts on which its limits depend. */
export interface LimitedCaller extends Pick<Caller, 'organizationId' | 'tokenId' | 'limits'> {
  token: Pick<Caller['token'], 'organizationName' | 'originId' | 'name' | 'limits' | 'parentLimits'>
}

/** What front processes hold of the limits of one organization or token, as this process knows. */
interface Lent extends Record<RateBucket, number> {
  /** Requests that may be open in front processes. */
  concurrent: number
  /** Requests that are open in front processes. */
  running: number
}

const nothing = (): void => {}
const fieldOf = { api: 'requestsPerMinute', jobs: 'jobsPerMinute' } as const satisfies Record<
  RateBucket,
  keyof EffectiveLimits
>

/** Names the owner of a limit in a message; `tokenName` if it is a token that created the token of the caller. */
export const ownerName = (owner: LimitOwner, { token }: LimitedCaller, tokenName = token.name): string =>
  owner === 'token' ? `token '${tokenName}'` : `organization '${token.organizationName}'`

/**
 * The limits of requests by organization and token, in memory, on the monotonic clock: requests and submissions per
 * minute, and submissions that are open at a time. A refused request is counted against none of them. A rotated token
 * continues the limits of the token before it, and the requests of a token count against those that created it, so that
 * children multiply no limit. Holds one small entry for every organization and token seen in the last
 * minutes; full buckets are removed, so memory is bounded.
 */
export function openLimiter(now: () => number = () => performance.now()) {
  const levels: Record<RateBucket, Map<string, Level>> = { api: new Map(), jobs: new Map() }
  /** Open submissions by organization and token, where there is a limit. */
  const open = new Map<string, number>()
  const lentOf = new Map<string, Lent>()
  let lastSweep = now()

  const levelAt = (id: string, bucket: RateBucket, perMinute: number, at: number): number =>
    refilled(levels[bucket].get(id), perMinute, at, lentOf.get(id)?.[bucket])
  const heldOpen = (id: string): number => (open.get(id) ?? 0) + (lentOf.get(id)?.concurrent ?? 0)
  /** Tells the caller also what is lent, unless it is refused: permits that are lent cannot serve it. */
  const told = (id: string, bucket: RateBucket, allowed: boolean, tokens: number, perMinute: number): Allowance =>
    allowanceOf(allowed, allowed ? tokens + (lentOf.get(id)?.[bucket] ?? 0) : tokens, perMinute)

  function lend(id: string, change: Partial<Lent>): void {
    const lent = lentOf.get(id) ?? { api: 0, jobs: 0, concurrent: 0, running: 0 }
    lent.api += change.api ?? 0
    lent.jobs += change.jobs ?? 0
    lent.concurrent += change.concurrent ?? 0
    lent.running += change.running ?? 0
    if (lent.api === 0 && lent.jobs === 0 && lent.concurrent === 0 && lent.running === 0) lentOf.delete(id)
    else lentOf.set(id, lent)
  }

  function sweep(at: number) {
    lastSweep = at
    for (const each of Object.values(levels))
      for (const [id, level] of each) if (at - level.at > 60_000) each.delete(id)
  }

  function add(id: string, by: 1 | -1): void {
    const requests = (open.get(id) ?? 0) + by
    if (requests === 0) open.delete(id)
    else open.set(id, requests)
  }

  function tooMany(owner: LimitOwner, max: number, caller: LimitedCaller, tokenName?: string): Failure {
    return new Failure(
      'rate_limit',
      `The ${ownerName(owner, caller, tokenName)} has ${max} requests open, which is its limit of concurrent requests. Send this one when another has ended, or submit it as a job.`,
      { retryAfterMs: whileOthersRunMs, facts: { limit: 'concurrent_requests', limit_of: owner } },
    )
  }

  function tooFast(
    owner: LimitOwner,
    bucket: RateBucket,
    { limit, retryAfterMs }: Allowance,
    caller: LimitedCaller,
    tokenName?: string,
  ) {
    const what = bucket === 'jobs' ? 'job submissions' : 'requests'
    return new Failure(
      'rate_limit',
      `The ${ownerName(owner, caller, tokenName)} may send ${limit} ${what} a minute. Wait ${Math.ceil(retryAfterMs / 1000)} s.`,
      {
        retryAfterMs,
        facts: { limit: bucket === 'jobs' ? 'jobs_per_minute' : 'requests_per_minute', limit_of: owner },
      },
    )
  }

  /** What the tokens above the caller's token allow. Most tokens have none, and cost nothing here. */
  function checkParents(caller: LimitedCaller, bucket: RateBucket, at: number, counted: boolean) {
    let parent = unlimited
    let refused: Failure | undefined
    for (const { originId, tokenName, ...limits } of caller.token.parentLimits) {
      const max = counted ? (limits.concurrentRequests ?? 0) : 0
      if (max > 0 && heldOpen(originId) >= max) refused ??= tooMany('token', max, caller, tokenName)
      const perMinute = limits[fieldOf[bucket]] ?? 0
      if (perMinute === 0) continue
      const tokens = levelAt(originId, bucket, perMinute, at)
      const allowance = told(originId, bucket, isEnough(tokens), tokens, perMinute)
      if (parent.limit === 0 || allowance.remaining < parent.remaining) parent = allowance
      if (!allowance.allowed) refused ??= tooFast('token', bucket, allowance, caller, tokenName)
    }
    return { parent, refused }
  }

  function takeFromParents({ token }: LimitedCaller, bucket: RateBucket, at: number): void {
    for (const { originId, ...limits } of token.parentLimits) {
      const perMinute = limits[fieldOf[bucket]] ?? 0
      if (perMinute === 0) continue
      const tokens = levelAt(originId, bucket, perMinute, at) - 1
      levels[bucket].set(originId, { tokens: Math.max(0, tokens), at })
    }
  }

  /** Counts a request, unless `onlyLook`. One function for both owners, so that a refusal by one costs the other nothing. */
  function check(caller: LimitedCaller, bucket: RateBucket, onlyLook: boolean): Entry {
    const { organizationId, token, limits } = caller
    const { originId } = token
    const at = now()
    if (at - lastSweep > 60_000) sweep(at)
    const counted = bucket === 'jobs' && !onlyLook
    const openOfOrganization = counted ? limits.concurrentRequests : 0
    const openOfToken = counted ? (token.limits.concurrentRequests ?? 0) : 0
    const field = fieldOf[bucket]
    const perOrganization = limits[field]
    const perToken = token.limits[field] ?? 0
    const hasParents = token.parentLimits.length > 0
    const above = hasParents ? checkParents(caller, bucket, at, counted) : undefined
    const { parent = unlimited } = above ?? {}
    let refused: Failure | undefined
    if (openOfToken > 0 && heldOpen(originId) >= openOfToken) refused = tooMany('token', openOfToken, caller)
    else if (openOfOrganization > 0 && heldOpen(organizationId) >= openOfOrganization)
      refused = tooMany('organization', openOfOrganization, caller)

    const buckets = levels[bucket]
    const inOrganization = perOrganization > 0 ? levelAt(organizationId, bucket, perOrganization, at) : Infinity
    const inToken = perToken > 0 ? levelAt(originId, bucket, perToken, at) : Infinity
    const [organizationAllows, tokenAllows] = [isEnough(inOrganization), isEnough(inToken)]
    const cost = onlyLook || refused || above?.refused || !organizationAllows || !tokenAllows ? 0 : 1
    let [organization, ofToken] = [unlimited, unlimited]
    if (perOrganization > 0) {
      const tokens = cost === 1 ? Math.max(0, inOrganization - 1) : inOrganization
      buckets.set(organizationId, { tokens, at })
      organization = told(organizationId, bucket, organizationAllows, tokens, perOrganization)
    }
    if (perToken > 0) {
      const tokens = cost === 1 ? Math.max(0, inToken - 1) : inToken
      buckets.set(originId, { tokens, at })
      ofToken = told(originId, bucket, tokenAllows, tokens, perToken)
    }
    if (!onlyLook && !refused && !tokenAllows) refused = tooFast('token', bucket, ofToken, caller)
    if (!onlyLook) refused ??= above?.refused
    if (!onlyLook && !refused && !organizationAllows) refused = tooFast('organization', bucket, organization, caller)
    if (cost === 1 && hasParents) takeFromParents(caller, bucket, at)
    const openOfParents =
      counted && hasParents ? token.parentLimits.filter(({ concurrentRequests }) => (concurrentRequests ?? 0) > 0) : []
    if (cost === 0 || (openOfOrganization === 0 && openOfToken === 0 && openOfParents.length === 0))
      return { organization, token: ofToken, parent, refused, leave: nothing }

    const move = (by: 1 | -1) => {
      if (openOfOrganization > 0) add(organizationId, by)
      if (openOfToken > 0) add(originId, by)
      for (const one of openOfParents) add(one.originId, by)
    }
    move(1)
    return { organization, token: ofToken, parent, refused, leave: () => move(-1) }
  }

  return {
    /** Counts a request of the caller against its limits, or says why it is refused. Call `leave` when it has ended. */
    enter: (caller: LimitedCaller, bucket: RateBucket): Entry => check(caller, bucket, false),
    /** The same limits without counting a request. */
    look: (caller: LimitedCaller, bucket: RateBucket): Entry => check(caller, bucket, true),
    /** How many submissions of an organization or a token are open. Counted only where there is a limit. */
    openRequests: (id: string): number => (open.get(id) ?? 0) + (lentOf.get(id)?.running ?? 0),

    /** The permits left here of a limit, without those that are lent. */
    level: (id: string, bucket: RateBucket, perMinute: number): number => levelAt(id, bucket, perMinute, now()),
    /** The requests that count as open: those of this process, and all that front processes may open. */
    heldOpen,
    /** Takes permits out of a bucket for a front process. They fill the bucket until they are returned. */
    lendPermits(id: string, bucket: RateBucket, perMinute: number, permits: number): void {
      const at = now()
      levels[bucket].set(id, { tokens: levelAt(id, bucket, perMinute, at) - permits, at })
      lend(id, { [bucket]: permits })
    },
    /** Ends the loan of permits: those that were used are gone, the others are in the bucket again. */
    returnPermits(id: string, bucket: RateBucket, perMinute: number, by: { used: number; unused: number }): void {
      const at = now()
      const tokens = levelAt(id, bucket, perMinute, at) + by.unused
      lend(id, { [bucket]: -(by.used + by.unused) })
      levels[bucket].set(id, { tokens, at })
    },
    /** Changes how many requests front processes may have open, and how many they have. */
    lendOpen: (id: string, concurrent: number, running: number): void => lend(id, { concurrent, running }),
  }
}
export type Limiter = ReturnType<typeof openLimiter>

/** The limits of requests as routes use them. Beside gateway processes a request may wait for what they hold of its limits. */
export interface RequestLimiter extends Pick<Limiter, 'look' | 'openRequests'> {
  enter: (...check: Parameters<Limiter['enter']>) => Entry | Promise<Entry>
}

/**
 * Counts requests without a valid token by client address: wrong tokens, and reads of links. Bounded: beyond `maxAddresses`,
 * the oldest is removed.
 */
export function openAddressLimiter(
  perMinute: number,
  now: () => number = () => performance.now(),
  maxAddresses = 10_000,
) {
  const levels = new Map<string, Level>()
  return {
    /** Milliseconds to wait if this address has used up its minute, else 0. Does not count. */
    blockedFor(address: string): number {
      const level = levels.size > 0 ? levels.get(clientPart(address)) : undefined
      if (!level) return 0
      const tokens = refilled(level, perMinute, now())
      return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 60_000) / perMinute)
    },
    count(address: string): void {
      const at = now()
      const client = clientPart(address)
      const tokens = refilled(levels.get(client), perMinute, at)
      levels.delete(client)
      levels.set(client, { tokens: isEnough(tokens) ? Math.max(0, tokens - 1) : tokens, at })
      if (levels.size > maxAddresses) levels.delete(levels.keys().next().value!)
    },
  }
}
export type AddressLimiter = ReturnType<typeof openAddressLimiter>
