import { Failure } from '../failure.ts'
import type { ParentLimits } from '../store/store.ts'
import {
  type Allowance,
  allowanceOf,
  isEnough,
  type Level,
  type LimitedCaller,
  limitOwners,
  ownerName,
  refilled,
  unlimited,
} from './limiter.ts'

interface TokenLevel extends Level {
  perMinute: number
}

/** The limits that apply to the work of a token. */
interface Meter {
  organizationId: string
  perOrganization: number
  originId: string
  perToken: number
  /** The tokens that created the token, whose limits it shares. */
  parents: readonly ParentLimits[]
}

/**
 * Limits of tokens of models per minute, by organization and API token, on the monotonic clock. Work is admitted while
 * the bucket holds at least one token, and its real usage is subtracted when it has ended: what runs at the same time
 * may take the bucket below zero, and the debt is repaid before the next work is admitted. So the sum over time is
 * exact, and nothing is refused because of an estimate.
 */
export function openTokenLimiter({
  now = () => performance.now(),
  maxMeters = 10_000,
}: {
  now?: () => number
  maxMeters?: number
} = {}) {
  const levels = new Map<string, TokenLevel>()
  /** By token id. Work may end long after its caller's token was last read. */
  const meters = new Map<string, Meter>()
  let lastSweep = now()

  function sweep(at: number): void {
    lastSweep = at
    for (const [id, level] of levels) if (refilled(level, level.perMinute, at) >= level.perMinute) levels.delete(id)
  }

  function look(id: string, perMinute: number): Allowance {
    if (perMinute === 0) return unlimited
    const tokens = refilled(levels.get(id), perMinute, now())
    return allowanceOf(isEnough(tokens), tokens, perMinute)
  }

  function spend(id: string, perMinute: number, tokens: number): void {
    if (perMinute === 0) return
    const at = now()
    if (levels.size >= maxMeters && at - lastSweep > 1_000) sweep(at)
    levels.set(id, { tokens: refilled(levels.get(id), perMinute, at) - tokens, at, perMinute })
  }

  const both = ({ organizationId, token, limits }: LimitedCaller) => ({
    organization: look(organizationId, limits.tokensPerMinute),
    token: look(token.originId, token.limits.tokensPerMinute ?? 0),
  })

  function refuse(left: Allowance, whose: string): void {
    if (left.allowed) return
    const { limit, retryAfterMs } = left
    const limit_of = whose.startsWith('token') ? 'token' : 'organization'
    throw new Failure(
      'rate_limit',
      `The ${whose} may use ${limit} tokens of models a minute, and has used them. Wait ${Math.ceil(retryAfterMs / 1000)} s.`,
      { retryAfterMs, facts: { limit: 'tokens_per_minute', limit_of } },
    )
  }

  const isLimited = ({ limits, token }: LimitedCaller): boolean =>
    limits.tokensPerMinute !== 0 || (token.limits.tokensPerMinute ?? 0) !== 0 || token.parentLimits.length > 0

  function know({ tokenId, organizationId, token, limits }: LimitedCaller): void {
    const perOrganization = limits.tokensPerMinute
    const perToken = token.limits.tokensPerMinute ?? 0
    const parents = token.parentLimits
    const meter = meters.get(tokenId)
    // Changed in place: to delete and add it again for each request costs 20 µs among thousands of tokens.
    if (meter) {
      meter.perOrganization = perOrganization
      meter.perToken = perToken
      meter.parents = parents
      return
    }
    meters.set(tokenId, { organizationId, perOrganization, originId: token.originId, perToken, parents })
    if (meters.size > maxMeters) meters.delete(meters.keys().next().value!)
  }

  return {
    /** What is left of the limits of the caller. */
    look: both,
    /** The tokens of models that are left of a limit; negative while a debt is repaid. */
    level: (id: string, perMinute: number): number => refilled(levels.get(id), perMinute, now()),
    /** Admits work of the caller. Its usage is reported to `used` later. Throws Failure `rate_limit`. */
    admit(caller: LimitedCaller): void {
      if (!isLimited(caller)) return void meters.delete(caller.tokenId)
      const left = both(caller)
      for (const owner of limitOwners) refuse(left[owner], ownerName(owner, caller))
      for (const { originId, tokensPerMinute, tokenName } of caller.token.parentLimits)
        refuse(look(originId, tokensPerMinute ?? 0), ownerName('token', caller, tokenName))
      know(caller)
    },
    /** Keeps the limits of a caller whose work a gateway process admits. Its usage is reported to `used` later. */
    know(caller: LimitedCaller): void {
      if (isLimited(caller)) know(caller)
      else meters.delete(caller.tokenId)
    },
    /** Subtracts the tokens that work of the API token has used. */
    used(tokenId: string, tokens: number): void {
      const meter = meters.get(tokenId)
      if (!meter || tokens === 0) return
      spend(meter.organizationId, meter.perOrganization, tokens)
      spend(meter.originId, meter.perToken, tokens)
      for (const { originId, tokensPerMinute } of meter.parents) spend(originId, tokensPerMinute ?? 0, tokens)
    },
  }
}
export type TokenLimiter = ReturnType<typeof openTokenLimiter>
