import type { LimitedCaller } from '../../../core/accounts/limiter.ts'
import { type EffectiveLimits, effectiveLimits, planFigures } from '../../../core/accounts/plans.ts'
import type { OrganizationLimits, TokenLimits } from '../../../core/store/store.ts'

const noTokenLimits: TokenLimits = {
  requestsPerMinute: null,
  jobsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
  monthlySpendLimit: null,
  allowedHours: null,
  localOnly: false,
}

/** An organization without figures of its own. */
export const noOwnLimits: OrganizationLimits = {
  requestsPerMinute: null,
  jobsPerMinute: null,
  concurrentRequests: null,
  pendingJobs: null,
  storedBytes: null,
  uploadsPerDay: null,
  monthlySpendLimit: null,
  localOnly: null,
}

/** No limits at all. */
export const noLimits: EffectiveLimits = effectiveLimits(planFigures('unlimited', {}), noOwnLimits)

/** A caller with these limits of its organization and its token. */
export const limitedCaller = (
  limits: Partial<EffectiveLimits> = {},
  tokenLimits: Partial<TokenLimits> = {},
  {
    organizationId = 'org_1',
    tokenId = 'tok_1',
    originId = tokenId,
    parents = [],
  }: {
    organizationId?: string
    tokenId?: string
    originId?: string
    /** The limits of the tokens that created it, by id. */
    parents?: [id: string, limits: Partial<TokenLimits>][]
  } = {},
): LimitedCaller => ({
  organizationId,
  tokenId,
  token: {
    name: tokenId,
    originId,
    organizationName: organizationId,
    limits: { ...noTokenLimits, ...tokenLimits },
    parentLimits: parents.map(([id, own]) => ({
      ...noTokenLimits,
      ...own,
      originId: id,
      tokenId: id,
      tokenName: id,
    })),
  },
  limits: { ...noLimits, ...limits },
})
