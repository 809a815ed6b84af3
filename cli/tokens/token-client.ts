import type { TokenView } from '../../core/accounts/token-view.ts'
import type { Failure } from '../../core/failure.ts'
import type { AllowedHours, Scope, TokenStatus } from '../../core/store/store.ts'
import { refused } from '../terminal/exit-codes.ts'

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
  rates: RatesOption
  /** Limits and metadata under their names in the API. */
  fields: TokenFieldsOption
}

/** What to change of a token; undefined stays. */
export interface TokenUpdateOptions {
  organization: string | undefined
  /** Also the last token that can manage tokens. */
  force: boolean
  name: string | undefined
  scopes: Scope[] | undefined
  /** Null for all. */
  models: string[] | null | undefined
  /** Id or e-mail address; null for nobody. */
  user: string | null | undefined
  /** Epoch milliseconds; null for never. */
  expiresAt: number | null | undefined
  status: 'active' | 'disabled' | undefined
  rates: RatesOption
  fields: TokenFieldsOption
}

/** Requests and submissions of work per minute. */
export interface RatesOption {
  api?: number | null
  jobs?: number | null
}

/** Limits and metadata of a token. An absent one stays, null is none; of a new token it is none, or that of the token in use. */
export interface TokenFieldsOption {
  tokens_per_minute?: number | null
  concurrent_requests?: number | null
  monthly_spend_limit?: number | null
  allowed_hours?: AllowedHours | null
  metadata?: Record<string, string> | null
}

/** Manages tokens in the store of this machine, or over HTTP on another server. */
export interface TokenClient {
  create(options: NewTokenOptions): Promise<{ token: TokenView; secret: string }>
  /** Returns all tokens, newest first. */
  list(options: { organization: string | undefined; status: TokenStatus | undefined }): Promise<TokenView[]>
  /** Throws Failure `not_found`, or `conflict` when `force` is necessary. */
  update(id: string, options: TokenUpdateOptions): Promise<TokenView>
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

/**
 * The rate limits after a change, as the API takes them: both at once. Undefined if none changes. `current` is called
 * only where one of them stays.
 */
export async function changedRates(
  { api, jobs }: RatesOption,
  current: () => Promise<Pick<TokenView, 'rate_limit'>>,
): Promise<{ api: number | null; jobs: number | null } | undefined> {
  if (api === undefined && jobs === undefined) return undefined
  if (api !== undefined && jobs !== undefined) return { api, jobs }
  const { rate_limit: now } = await current()
  return { api: api === undefined ? now.api : api, jobs: jobs === undefined ? now.jobs : jobs }
}

/** The rate limits of a new token; undefined if none is given. */
export const newRates = ({ api, jobs }: RatesOption): { api: number | null; jobs: number | null } | undefined =>
  api === undefined && jobs === undefined ? undefined : { api: api ?? null, jobs: jobs ?? null }
