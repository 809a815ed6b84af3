import type { Scope, TokenLimits } from '../store/store.ts'

/** A token to create. */
export interface TokenOptions {
  organizationId: string
  name: string
  scopes: Scope[]
  /** Epoch milliseconds; null never expires; undefined takes the default (90 days with an admin scope, else never). */
  expiresAt?: number | null
  models?: string[] | null
  limits?: Partial<TokenLimits>
  userId?: string | null
  /** JSON text of an object. */
  metadata?: string | null
  /** The first token of its rotations. */
  originId?: string
  createdBy?: string | null
}
