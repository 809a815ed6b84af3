import { z } from 'zod'
import type { Caller } from '../../core/accounts/accounts.ts'
import type { RequestLimiter } from '../../core/accounts/limiter.ts'
import { SpendView, spendView } from '../../core/accounts/spend-view.ts'
import type { TokenLimiter } from '../../core/accounts/token-limiter.ts'
import type { Spend } from '../../core/admission/spend.ts'
import {
  boolean,
  integer,
  namedObject,
  nullableInteger,
  nullableNumber,
  oneOf,
  string,
} from '../../core/schemas/fields.ts'
import type { OrganizationUse } from '../../core/store/store.ts'

const limit = (what: string) => nullableInteger(`${what}; null for no limit.`)

/** The effective limits of an organization. */
export const OrganizationLimitsView = namedObject(
  'EffectiveLimits',
  'The limits of the plan, with the figures of the organization itself.',
  {
    api_requests_per_minute: limit('Most API requests per minute'),
    job_submissions_per_minute: limit('Most submissions of work per minute'),
    tokens_per_minute: limit('Most tokens of text models per minute'),
    concurrent_requests: limit('Most submissions of work that are open at a time'),
    pending_jobs: limit('Most jobs that wait or run'),
    stored_bytes: limit('Most bytes of all files'),
    uploads_per_day: limit('Most uploads per calendar day in UTC'),
    monthly_spend_limit: nullableNumber(
      'Most spending per calendar month in UTC, in the currency of the prices; null for no limit.',
    ),
    local_only: boolean('Whether its work never leaves this machine.'),
  },
)

export const LimitUse = namedObject('LimitUse', 'A limit that applies to the caller, and what is left of it.', {
  name: oneOf('Name of the limit.', [
    'requests_per_minute',
    'jobs_per_minute',
    'tokens_per_minute',
    'concurrent_requests',
    'pending_jobs',
    'stored_bytes',
    'uploads_per_day',
  ]),
  limit_of: oneOf('Whose limit it is.', ['organization', 'token']),
  limit: integer('The limit.'),
  remaining: integer('How much is left of it, from 0.'),
  reset_seconds: nullableInteger('Seconds until all of it is left again; null if that depends on work that ends.'),
})
type LimitUse = z.input<typeof LimitUse>

/** The spend limits that apply to a caller. */
export const SpendUse = namedObject('SpendUse', 'The monthly spend limits of the caller, and what is left of them.', {
  currency: string('Currency of the amounts (ISO 4217).'),
  organization: SpendView.describe('The limit of the organization, and what all its tokens have spent.'),
  token: SpendView.describe('The limit of the token, and what it has spent with the secrets that it had before.'),
})

/** What the organization and the token of a caller have spent this month. */
export const spendUse = (
  { organizationId, token, limits }: Pick<Caller, 'organizationId' | 'token' | 'limits'>,
  spend: Pick<Spend, 'currency' | 'ofOrganization' | 'ofToken'>,
): z.input<typeof SpendUse> => ({
  currency: spend.currency,
  organization: spendView(spend.ofOrganization(organizationId, limits.monthlySpendLimit)),
  token: spendView(spend.ofToken(token)),
})

/** The effective limits of the organization of a caller, as readers get them. */
export const callerLimitsView = ({ limits }: Pick<Caller, 'limits'>): z.input<typeof OrganizationLimitsView> => ({
  api_requests_per_minute: limits.requestsPerMinute || null,
  job_submissions_per_minute: limits.jobsPerMinute || null,
  tokens_per_minute: limits.tokensPerMinute || null,
  concurrent_requests: limits.concurrentRequests || null,
  pending_jobs: limits.pendingJobs || null,
  stored_bytes: limits.storedBytes || null,
  uploads_per_day: limits.uploadsPerDay || null,
  monthly_spend_limit: limits.monthlySpendLimit === null ? null : limits.monthlySpendLimit / 1e6,
  local_only: limits.localOnly,
})

/** Every limit that applies to the caller, with what is left of it: those of the organization, then those of the token. */
export function limitUse(
  caller: Caller,
  use: OrganizationUse,
  { limiter, tokenLimiter }: { limiter: RequestLimiter; tokenLimiter: TokenLimiter },
  now = Date.now(),
): LimitUse[] {
  const { limits, token, organizationId } = caller
  const [api, jobs, tokens] = [limiter.look(caller, 'api'), limiter.look(caller, 'jobs'), tokenLimiter.look(caller)]
  const found: LimitUse[] = []
  for (const limit_of of ['organization', 'token'] as const) {
    const rates = [
      ['requests_per_minute', api[limit_of]],
      ['jobs_per_minute', jobs[limit_of]],
      ['tokens_per_minute', tokens[limit_of]],
    ] as const
    for (const [name, { limit, remaining, resetMs }] of rates)
      if (limit > 0) found.push({ name, limit_of, limit, remaining, reset_seconds: Math.ceil(resetMs / 1000) })
    const [id, max] =
      limit_of === 'organization'
        ? [organizationId, limits.concurrentRequests]
        : [token.originId, token.limits.concurrentRequests ?? 0]
    add('concurrent_requests', limit_of, max, limiter.openRequests(id), null)
  }
  const untilMidnight = Math.ceil((86_400_000 - (now % 86_400_000)) / 1000)
  add('pending_jobs', 'organization', limits.pendingJobs, use.pendingJobs, null)
  add('stored_bytes', 'organization', limits.storedBytes, use.storedBytes, null)
  add('uploads_per_day', 'organization', limits.uploadsPerDay, use.uploadsToday, untilMidnight)
  return found

  function add(
    name: LimitUse['name'],
    limit_of: LimitUse['limit_of'],
    limit: number,
    used: number,
    reset_seconds: number | null,
  ): void {
    if (limit > 0) found.push({ name, limit_of, limit, remaining: Math.max(0, limit - used), reset_seconds })
  }
}
