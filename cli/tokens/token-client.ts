import type { TokenView } from '../../core/accounts/token-view.ts'
import type { Failure } from '../../core/failure.ts'
import type { Scope, TokenStatus } from '../../core/store/store.ts'
import { refused } from '../exit-codes.ts'

export interface NewTokenOptions {
  /** Id or name of the organization; the only one there is when undefined. */
  organization: string | undefined
  name: string
  scopes: Scope[]
  /** Epoch milliseconds; null never; undefined is left to the server. */
  expiresAt: number | null | undefined
  models: string[] | undefined
}

/** Where tokens are managed: on this machine's store, or over HTTP on another server. */
export interface TokenClient {
  create(options: NewTokenOptions): Promise<{ token: TokenView; secret: string }>
  /** Newest first, all of them. */
  list(want: { organization: string | undefined; status: TokenStatus | undefined }): Promise<TokenView[]>
  /** Throws Failure `not_found`, or `conflict` where `force` is needed. */
  revoke(id: string, want: { organization: string | undefined; force: boolean }): Promise<void>
  rotate(
    id: string,
    want: { organization: string | undefined; overlapMs: number },
  ): Promise<{ token: TokenView; secret: string; previous_valid_until: number }>
  close(): Promise<void>
}

/** The answer for an id that no organization here has. */
export const noToken = (id: string): Failure =>
  refused('not_found', `There is no token '${id}' here. "infer token list" shows them.`)
