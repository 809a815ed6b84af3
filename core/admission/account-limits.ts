import type { LimitedCaller } from '../accounts/limiter.ts'
import type { EffectiveLimits } from '../accounts/plans.ts'
import type { ParentLimits } from '../store/store.ts'

/** The limits of one organization or token of which a front process can hold a part. 0 is no limit, except for `spend`. */
export interface AccountLimits {
  /** Requests per minute. */
  api: number
  /** Submissions of work per minute. */
  jobs: number
  /** Submissions that may be open at a time. */
  concurrent: number
  /** Tokens of models per minute. */
  tokens: number
  /** Millionths of the currency unit per month; null without a limit. */
  spend: number | null
}

/** An organization or token that limits a caller. */
export interface LimitedAccount {
  /** Of the organization, or of the first token of the rotations of the token. */
  id: string
  role: 'token' | 'parent' | 'organization'
  limits: AccountLimits
}

type Figures = Pick<
  { [K in keyof EffectiveLimits]: EffectiveLimits[K] | null },
  'requestsPerMinute' | 'jobsPerMinute' | 'concurrentRequests' | 'tokensPerMinute' | 'monthlySpendLimit'
>

const limitsIn = (figures: Figures | Omit<ParentLimits, 'originId'>): AccountLimits => ({
  api: figures.requestsPerMinute ?? 0,
  jobs: figures.jobsPerMinute ?? 0,
  concurrent: figures.concurrentRequests ?? 0,
  tokens: figures.tokensPerMinute ?? 0,
  spend: figures.monthlySpendLimit,
})

const limitsAnything = ({ limits }: LimitedAccount): boolean =>
  limits.api > 0 || limits.jobs > 0 || limits.concurrent > 0 || limits.tokens > 0 || limits.spend !== null

const known = new WeakMap<LimitedCaller, readonly LimitedAccount[]>()

/**
 * The organization and tokens that limit a caller: empty for a caller without limits. Computed once for a caller while it
 * is cached: each request needs them.
 */
export function accountsOf(caller: LimitedCaller): readonly LimitedAccount[] {
  const before = known.get(caller)
  if (before) return before
  const { organizationId, token, limits } = caller
  const all: LimitedAccount[] = [
    { id: token.originId, role: 'token', limits: limitsIn(token.limits) },
    ...token.parentLimits.map(
      (parent): LimitedAccount => ({ id: parent.originId, role: 'parent', limits: limitsIn(parent) }),
    ),
    { id: organizationId, role: 'organization', limits: limitsIn(limits) },
  ]
  const limited = all.filter(limitsAnything)
  known.set(caller, limited)
  return limited
}

/** Whether a part of the one limits is a part of the other. */
export const sameLimits = (a: AccountLimits, b: AccountLimits): boolean =>
  a === b ||
  (a.api === b.api &&
    a.jobs === b.jobs &&
    a.concurrent === b.concurrent &&
    a.tokens === b.tokens &&
    a.spend === b.spend)
