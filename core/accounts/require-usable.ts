import { Failure } from '../failure.ts'
import type { VerifiableToken } from '../store/store.ts'

/** Throws Failure `token_revoked`, `token_expired` or `organization_disabled` if the token cannot be used at this time. */
export function requireUsable(token: VerifiableToken, now: number): void {
  if (token.status === 'revoked' || token.status === 'disabled')
    throw new Failure('token_revoked', `The token '${token.name}' (${token.hint}) is ${token.status}.`)
  if (token.expiresAt !== null && token.expiresAt <= now)
    throw new Failure(
      'token_expired',
      `The token '${token.name}' (${token.hint}) expired at ${new Date(token.expiresAt).toISOString()}.`,
    )
  if (token.organizationStatus !== 'active')
    throw new Failure(
      'organization_disabled',
      `The organization '${token.organizationName}' is ${token.organizationStatus}. Ask the operator of this server.`,
    )
}
