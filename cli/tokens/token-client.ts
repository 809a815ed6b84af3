import type { TokenView } from '../../core/accounts/token-view.ts'
import type { Failure } from '../../core/failure.ts'
import type { Scope, TokenStatus } from '../../core/store/store.ts'
import { refused } from '../exit-codes.ts'

export interface NewTokenOptions {
  /** Id or name of the organization; undefined for the only one or the default. */
  organization: string | undefined
  name: string
  scopes: Scope[]
  /** Epoch milliseconds; null for never; undefined for the server's default. */
  expiresAt: number | null | undefined
  models: string[] | undefined
  /** Id or e-mail address of the user who owns it; undefined for the default. */
  user: string | undefined
  /** Limits and metadata under their names in the API. */
  fields: TokenFieldsOption
}

/** Limits and metadata of a new token. An absent one is none, or that of the token in use. */
export interface TokenFieldsOption {
  rate_limit?: { api: number | null; jobs: number | null }
  tokens_per_minute?: number
  concurrent_requests?: number
  monthly_spend_limit?: number
  metadata?: Record<string, string>
}

/** Manages tokens in the store of this machine, or over HTTP on another server. */
export interface TokenClient {
  create(options: NewTokenOptions): Promise<{ token: TokenView; secret: string }>
  /** Returns all tokens, newest first. */
  list(options: { organization: string | undefined; status: TokenStatus | undefined }): Promise<TokenView[]>
  /** Throws Failure `not_found`, or `conflict` when `force` is necessary. */
  revoke(id: string, options: { organization: string | undefined; force: boolean }): Promise<void>
  rotate(
    id: string,
    options: { organization: string | undefined; overlapMs: number },
  ): Promise<{ token: TokenView; secret: string; previous_valid_until: number }>
  close(): Promise<void>
}

/** Returns the failure for an unknown token id. */
export const noToken = (id: string): Failure =>
  refused('not_found', `There is no token '${id}' here. See: infer token list`)
