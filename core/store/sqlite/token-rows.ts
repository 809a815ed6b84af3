import type { AllowedHours, Scope, TokenLimits, TokenRecord } from '../store.ts'

/** The columns of the limits of a token. */
export interface TokenLimitsRow {
  requests_per_minute: number | null
  jobs_per_minute: number | null
  tokens_per_minute: number | null
  concurrent_requests: number | null
  monthly_spend_limit: number | null
  allowed_hours: string | null
}
export const tokenLimitsColumns =
  'requests_per_minute, jobs_per_minute, tokens_per_minute, concurrent_requests, monthly_spend_limit, allowed_hours'

export const tokenLimitsOf = (row: TokenLimitsRow): TokenLimits => ({
  requestsPerMinute: row.requests_per_minute,
  jobsPerMinute: row.jobs_per_minute,
  tokensPerMinute: row.tokens_per_minute,
  concurrentRequests: row.concurrent_requests,
  monthlySpendLimit: row.monthly_spend_limit,
  allowedHours: row.allowed_hours === null ? null : (JSON.parse(row.allowed_hours) as AllowedHours),
})

export const tokenLimitValues = (limits: Partial<TokenLimits>): (number | string | null)[] => [
  limits.requestsPerMinute ?? null,
  limits.jobsPerMinute ?? null,
  limits.tokensPerMinute ?? null,
  limits.concurrentRequests ?? null,
  limits.monthlySpendLimit ?? null,
  limits.allowedHours ? JSON.stringify(limits.allowedHours) : null,
]

export interface TokenRow extends TokenLimitsRow {
  organization_id: string
  id: string
  name: string
  scopes: string
  hint: string
  models: string | null
  status: 'active' | 'disabled' | 'revoked'
  created_at: number
  expires_at: number | null
  last_used_at: number | null
  created_by: string | null
  user_id: string | null
  metadata: string | null
  origin_id: string | null
}

export const tokenColumns = `organization_id, id, name, scopes, hint, models, status, created_at, expires_at, last_used_at, created_by,
  user_id, metadata, origin_id, ${tokenLimitsColumns}`

export const tokenOf = (row: TokenRow, now: number): TokenRecord => ({
  organizationId: row.organization_id,
  id: row.id,
  name: row.name,
  scopes: JSON.parse(row.scopes) as Scope[],
  hint: row.hint,
  models: row.models === null ? null : (JSON.parse(row.models) as string[]),
  status: row.status === 'active' && row.expires_at !== null && row.expires_at <= now ? 'expired' : row.status,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  lastUsedAt: row.last_used_at,
  createdBy: row.created_by,
  userId: row.user_id,
  metadata: row.metadata,
  originId: row.origin_id ?? row.id,
  limits: tokenLimitsOf(row),
})
