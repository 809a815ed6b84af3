import type { TokenStore, VerifiableToken } from '../store/store.ts'
import type { EffectiveLimits, Plans } from './plans.ts'
import { effectiveLimits } from './plans.ts'

/** Whose `local_only` keeps work on this machine. */
export interface LocalOnlyOwner {
  of: 'token' | 'organization'
  name: string
}

/** Returns whose `local_only` keeps the work of a token on this machine; undefined if nobody's does. */
export function localOnlyOwner({
  limits,
  token,
}: {
  /** Of the organization. */
  limits: Pick<EffectiveLimits, 'localOnly'>
  token: Pick<VerifiableToken, 'name' | 'organizationName'> & {
    limits: Pick<VerifiableToken['limits'], 'localOnly'>
  }
}): LocalOnlyOwner | undefined {
  if (limits.localOnly) return { of: 'organization', name: token.organizationName }
  return token.limits.localOnly ? { of: 'token', name: token.name } : undefined
}

/**
 * Returns a function that reads the same for a token in any state, as it is now. Synchronous; about 10 µs. Work of a token
 * that is not known stays on this machine.
 */
export const openLocalOnlyOf =
  ({ tokens, plans }: { tokens: Pick<TokenStore, 'verifyId'>; plans: Pick<Plans, 'of'> }) =>
  (tokenId: string): LocalOnlyOwner | undefined => {
    const token = tokens.verifyId(tokenId)
    if (!token) return { of: 'token', name: tokenId }
    return localOnlyOwner({ token, limits: effectiveLimits(plans.of(token.plan), token.organizationLimits) })
  }
export type LocalOnlyOf = ReturnType<typeof openLocalOnlyOf>
