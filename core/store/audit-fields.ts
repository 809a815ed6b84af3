import { mapMembers, pick } from '../members.ts'
import type { Organization, OrganizationLimits, TokenLimits, TokenRecord, User } from './account-records.ts'
import type { WebhookEndpoint } from './webhooks.ts'

/** Objects as the audit log shows them: under the names of the API, with its units, and without secrets. */

export const seconds = (ms: number | null): number | null => (ms === null ? null : Math.floor(ms / 1000))
const units = (micros: number | null): number | null => (micros === null ? null : micros / 1e6)

/** The counted limits of an organization, by their names in the API. */
export const organizationLimitNames = {
  api_requests_per_minute: 'requestsPerMinute',
  job_submissions_per_minute: 'jobsPerMinute',
  concurrent_requests: 'concurrentRequests',
  pending_jobs: 'pendingJobs',
  stored_bytes: 'storedBytes',
  uploads_per_day: 'uploadsPerDay',
} as const satisfies Record<string, keyof OrganizationLimits>

/** The limits of an organization under their names in the API, with its units. */
export const namedLimits = (limits: OrganizationLimits) => ({
  ...mapMembers(organizationLimitNames, field => limits[field]),
  monthly_spend_limit: units(limits.monthlySpendLimit),
  local_only: limits.localOnly,
})

export const auditedOrganization = (it: Organization): Record<string, unknown> => ({
  ...pick(it, 'name', 'plan', 'status', 'share', 'region'),
  call_storage: it.callStorage,
  ...namedLimits(it),
})

export const auditedUser = (user: Pick<User, 'name' | 'email' | 'role'>) => pick(user, 'name', 'email', 'role')

/** The limits of a token under their names in the API, with its units. */
export const namedTokenLimits = (limits: TokenLimits) => ({
  rate_limit: { api: limits.requestsPerMinute, jobs: limits.jobsPerMinute },
  tokens_per_minute: limits.tokensPerMinute,
  concurrent_requests: limits.concurrentRequests,
  monthly_spend_limit: units(limits.monthlySpendLimit),
  allowed_hours: limits.allowedHours,
  local_only: limits.localOnly,
})

export const auditedToken = (it: TokenRecord): Record<string, unknown> => ({
  name: it.name,
  scopes: it.scopes,
  status: it.status,
  models: it.models,
  expires_at: seconds(it.expiresAt),
  user_id: it.userId,
  ...namedTokenLimits(it.limits),
  metadata: it.metadata === null ? null : (JSON.parse(it.metadata) as unknown),
})

/** `url` is whole: `withoutQuery` shortens it for the log. */
export const auditedEndpoint = ({ name, url, eventTypes, enabled }: WebhookEndpoint): Record<string, unknown> => ({
  name,
  url,
  event_types: eventTypes,
  enabled,
})

/** The same fields without the query of `url`, which may have a secret of the receiver. */
export function withoutQuery({ url, ...fields }: Record<string, unknown>): Record<string, unknown> {
  return typeof url === 'string' ? { ...fields, url: url.replace(/\?.*$/s, '?…') } : fields
}

/** The fields that differ, before and after. Undefined if none does. */
export function changedFields(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): { before: Record<string, unknown>; after: Record<string, unknown> } | undefined {
  const changed = Object.keys(after).filter(name => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  if (changed.length === 0) return undefined
  const pick = (from: Record<string, unknown>) => Object.fromEntries(changed.map(name => [name, from[name]]))
  return { before: pick(before), after: pick(after) }
}
