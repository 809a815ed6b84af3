import { Failure } from '../core/failure.ts'
import type { Call } from './call.ts'

/** The organization that the first start makes, whose root token lies on the machine. */
const owner = 'default'

/** Whether the caller belongs to the organization that owns the machine. Scopes say what somebody may do in his own. */
export const ownsMachine = (call: Call): boolean => call.caller.token.organizationName === owner

/**
 * Throws Failure `organization_mismatch` for all other organizations. `what` is the beginning of a sentence: what all of
 * them share and its owner alone may see or change.
 */
export function admitOwner(call: Call, what: string): void {
  if (ownsMachine(call)) return
  throw new Failure(
    'organization_mismatch',
    `${what} for the owner of this machine: use a token of the organization '${owner}', not of '${call.caller.token.organizationName}'.`,
  )
}
