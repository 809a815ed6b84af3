import { z } from 'zod'
import type { Caller } from '../../../core/accounts/accounts.ts'
import type { Organizations } from '../../../core/accounts/organizations.ts'
import { Failure } from '../../../core/failure.ts'
import { string } from '../../../core/schemas/fields.ts'
import type { Actor, Role, TokenLimits, User } from '../../../core/store/store.ts'

interface OrganizationsOwner {
  organizations: Organizations
}

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

/** The path parameter of an organization's routes. */
export const OrganizationPath = z.object({
  organization: string(
    'Id of the organization of your token, as in `GET /api/me`. The owner of the machine reaches all organizations.',
  ),
})

/** Throws Failure `organization_mismatch` unless this is the organization of the caller. */
export function requireOwn(id: string, { caller }: { caller: Caller }): void {
  if (id === caller.organizationId) return
  throw new Failure(
    'organization_mismatch',
    `This token belongs to the organization ${caller.organizationId}, not to the one in the path.`,
  )
}

/** The failure for an unknown organization. */
export const absentOrganization = (id: string): Failure =>
  new Failure('not_found', `There is no organization ${id.slice(0, 64)}.`)

/**
 * Returns the organization of the path if it is the caller's, or if the caller owns the machine. To others any other
 * organization gives the same Failure, existing or not: `organization_mismatch`. The owner of the machine gets
 * `not_found` for an absent one.
 */
export async function reachOrganization(id: string, exchange: { caller: Caller }, owners: OrganizationsOwner) {
  if (!ownsMachine(exchange)) requireOwn(id, exchange)
  const organization = await owners.organizations.find(id)
  if (!organization) throw absentOrganization(id)
  return organization
}

/** The same for changes. Throws Failure `conflict` for an organization that was deleted. */
export async function reachToChange(id: string, exchange: { caller: Caller }, owners: OrganizationsOwner) {
  const organization = await reachOrganization(id, exchange, owners)
  if (organization.status === 'deleted')
    throw new Failure('conflict', `The organization '${organization.name}' was deleted.`)
  return organization
}

/** The caller as the audit log names him. */
export const actorOf = ({ caller, clientAddress }: { caller: Caller; clientAddress: string }): Actor =>
  caller.actor ?? {
    kind: 'token',
    tokenId: caller.tokenId,
    userId: caller.token.userId,
    address: clientAddress,
    osUser: null,
  }

/** What bounds the rights that a caller can give in an organization. */
export interface Granting {
  /** The user of the caller's token; undefined for a token without a user, and outside the caller's organization. */
  user: User | undefined
  role: Role | null
  limits: TokenLimits
}

/**
 * Reads what bounds the rights that the caller can give in this organization. A token without a user is bounded by
 * itself alone.
 */
export async function grantingOf(exchange: { caller: Caller }, id: string, owners: OrganizationsOwner) {
  const { token } = exchange.caller
  const own = id === exchange.caller.organizationId
  const user = own && token.userId !== null ? await owners.organizations.users.find(id, token.userId) : undefined
  // The limits of the caller's token hold in other organizations too: they are what its owner was given.
  return { user, role: user?.role ?? null, limits: token.limits }
}
