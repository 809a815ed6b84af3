import type { Caller } from '../../../core/accounts/accounts.ts'
import { Failure } from '../../../core/failure.ts'

/** The organization that the first start creates, whose root token is stored on the machine. */
const owner = 'default'

/**
 * Whether the caller belongs to the organization that owns the machine. Scopes apply to the caller's own organization
 * only.
 */
export const ownsMachine = ({ caller }: { caller: Caller }): boolean => caller.token.organizationName === owner

/**
 * Throws Failure `organization_mismatch` for all organizations but the owner of the machine. `what` begins the sentence
 * of the message: `The logs of this server are`.
 */
export function requireMachineOwner({ caller }: { caller: Caller }, what: string): void {
  if (ownsMachine({ caller })) return
  throw new Failure(
    'organization_mismatch',
    `${what} only for the owner of this machine. Use a token of the organization '${owner}', not of '${caller.token.organizationName}'.`,
  )
}
