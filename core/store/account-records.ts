export interface NewOrganization {
  id: string
  name: string
  plan: Plan
  /** Requests a minute; null takes the plan's figure, 0 is unlimited. */
  requestsPerMinute: number | null
  jobsPerMinute: number | null
  createdAt: number
}
export interface Organization extends NewOrganization {
  status: 'active' | 'disabled'
}

export const plans = ['free', 'pro', 'enterprise'] as const
export type Plan = (typeof plans)[number]

export const scopes = ['user:read', 'user:write', 'admin:read', 'admin:write'] as const
export type Scope = (typeof scopes)[number]

export type TokenStatus = 'active' | 'disabled' | 'revoked' | 'expired'

export interface NewToken {
  id: string
  /** The 12 characters of the secret that identify the row. */
  publicId: string
  organizationId: string
  name: string
  scopes: Scope[]
  /** HMAC-SHA256 of the whole secret, 32 bytes. */
  digest: Uint8Array
  /** Its last four characters. */
  hint: string
  /** Model ids or globs that it may use; null means all. */
  models: string[] | null
  createdAt: number
  expiresAt: number | null
  /** Id of the token that created it; null for the command line. */
  createdBy: string | null
}

export interface TokenRecord extends Omit<NewToken, 'digest' | 'publicId'> {
  status: TokenStatus
  lastUsedAt: number | null
}

export type TokenChange = Partial<Pick<NewToken, 'name' | 'scopes' | 'expiresAt' | 'models'>> & {
  status?: 'active' | 'disabled'
}

/** What authentication needs to know of a token and its organization, in one row. */
export interface VerifiableToken {
  id: string
  organizationId: string
  organizationName: string
  organizationStatus: 'active' | 'disabled'
  plan: Plan
  requestsPerMinute: number | null
  jobsPerMinute: number | null
  name: string
  scopes: Scope[]
  digest: Buffer
  hint: string
  models: string[] | null
  status: 'active' | 'disabled' | 'revoked'
  createdAt: number
  expiresAt: number | null
  lastUsedAt: number | null
}
