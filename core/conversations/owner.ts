import type { Caller } from '../accounts/accounts.ts'
import { Failure } from '../failure.ts'
import type { ConversationOwner } from '../store/store.ts'

/** Whose conversations a caller reads: those of the user of the token, or of the token itself where it has none. */
export const ownerOf = ({
  organizationId,
  token,
}: Pick<Caller, 'organizationId'> & { token: Pick<Caller['token'], 'userId' | 'originId'> }): ConversationOwner => ({
  organizationId,
  owner: token.userId ?? token.originId,
})

/** Throws Failure `role_not_allowed` where the organization stores no content. */
export function requireStorage({ token: { callStorage, organizationName } }: Caller): void {
  if (callStorage === 'content') return
  throw new Failure(
    'role_not_allowed',
    `The organization '${organizationName}' stores no content of calls, so no conversation is kept for it. Who administers it can change that: PATCH /api/organizations/{organization} with "call_storage": "content".`,
  )
}
