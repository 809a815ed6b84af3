import type { z } from 'zod'
import { grantLimits, grantModels, grantRole, grantScopes } from '../../../core/accounts/grant.ts'
import { givenTokenLimits, type TokenView, tokenView } from '../../../core/accounts/token-fields.ts'
import { Failure } from '../../../core/failure.ts'
import type { TokenRecord } from '../../../core/store/store.ts'
import { actorOf, type Granting, grantingOf, reachOrganization, reachToChange } from '../../http/access/reach.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import type { TokenChange, TokenCreate, TokenRotate } from './token-request.ts'

export type TokenOwners = Pick<Owners, 'accounts' | 'organizations'>

/** The failure for an unknown token. */
export const missingToken = (id: string) => new Failure('not_found', `Token ${id.slice(0, 64)} was not found.`)

function expiry(body: { expires_at?: number | null; expires_in?: number }): number | null | undefined {
  if (body.expires_in !== undefined) return Date.now() + body.expires_in * 1000
  if (body.expires_at === undefined) return undefined
  if (body.expires_at !== null && body.expires_at * 1000 <= Date.now())
    throw new Failure('invalid_value', "'expires_at' lies in the past.", { param: 'expires_at' })
  return body.expires_at === null ? null : body.expires_at * 1000
}

const forced = (call: Call): boolean => call.query.get('force') === 'true'

const metadataText = (metadata: Record<string, string> | null | undefined): string | null =>
  metadata ? JSON.stringify(metadata) : null

/**
 * Throws Failure `role_not_allowed` if the caller may not give a token to this user, or take one of his: his role may
 * not be above that of the caller's user. Unknown users are refused by the store.
 */
async function grantUser(
  organization: string,
  userId: string | null,
  { role }: Granting,
  { organizations }: TokenOwners,
): Promise<void> {
  const user = userId === null ? undefined : await organizations.users.find(organization, userId)
  if (userId === null) grantRole(null, role, 'create or change')
  else if (user) grantRole(user.role, role, 'create or change tokens of')
}

/**
 * Revokes a token. Throws Failure `not_found`, `role_not_allowed` for the token of a higher role, and `conflict` for the
 * caller's own token unless forced.
 */
export async function revokeToken(
  organization: string,
  id: string,
  call: Call,
  owners: TokenOwners,
): Promise<{ id: string; object: 'token'; deleted: true }> {
  const force = forced(call)
  if (id === call.caller.tokenId && !force)
    throw new Failure('conflict', 'This is the token that you are using. Add ?force=true to revoke it anyway.')
  const { id: organizationId } = await reachOrganization(organization, call, owners)
  const old = await owners.accounts.token(organizationId, id)
  if (!old) throw missingToken(id)
  await grantUser(organizationId, old.userId, await grantingOf(call, organizationId, owners), owners)
  const revoked = await owners.accounts.revoke(organization, id, force, actorOf(call))
  if (!revoked) throw missingToken(id)
  return { id: revoked.id, object: 'token', deleted: true }
}

/** Creates a token with no more rights than the caller has, and returns its secret. */
export async function createToken(
  { params, body }: { params: { organization: string }; body: z.output<typeof TokenCreate> },
  call: Call,
  owners: TokenOwners,
): Promise<{ token: TokenView; secret: string }> {
  const { id: organizationId } = await reachToChange(params.organization, call, owners)
  const granting = await grantingOf(call, organizationId, owners)
  const userId = body.user_id === undefined ? (granting.user?.id ?? null) : body.user_id
  await grantUser(organizationId, userId, granting, owners)
  const { token, secret } = await owners.accounts.issue(
    {
      organizationId,
      name: body.name,
      scopes: grantScopes(body.scopes, call.caller),
      expiresAt: expiry(body),
      models: grantModels(body.models === undefined ? call.caller.token.models : body.models, call.caller),
      limits: grantLimits({ ...granting.limits, ...givenTokenLimits(body) }, granting.limits),
      userId,
      metadata: metadataText(body.metadata),
      createdBy: actorOf(call).tokenId,
    },
    actorOf(call),
  )
  return { token: tokenView(token), secret }
}

/** Changes a token, to no more rights than the caller has. */
export async function updateToken(
  { params, body }: { params: { organization: string; id: string }; body: z.output<typeof TokenChange> },
  call: Call,
  owners: TokenOwners,
): Promise<TokenRecord> {
  const { id: organization } = await reachToChange(params.organization, call, owners)
  const old = await owners.accounts.token(organization, params.id)
  if (!old) throw missingToken(params.id)
  const granting = await grantingOf(call, organization, owners)
  await grantUser(organization, old.userId, granting, owners)
  if (body.user_id !== undefined) await grantUser(organization, body.user_id, granting, owners)
  const change = {
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.scopes === undefined ? {} : { scopes: grantScopes(body.scopes, call.caller) }),
    ...(body.status === undefined ? {} : { status: body.status }),
    ...(body.expires_at === undefined ? {} : { expiresAt: expiry(body) }),
    ...(body.models === undefined ? {} : { models: grantModels(body.models, call.caller) }),
    ...(body.user_id === undefined ? {} : { userId: body.user_id }),
    ...(body.metadata === undefined ? {} : { metadata: metadataText(body.metadata) }),
    limits: grantLimits(givenTokenLimits(body), granting.limits),
  }
  const token = await owners.accounts.update(organization, params.id, change, forced(call), actorOf(call))
  if (!token) throw missingToken(params.id)
  return token
}

/** Gives a token a new secret. */
export async function rotateToken(
  { params, body }: { params: { organization: string; id: string }; body: z.output<typeof TokenRotate> },
  call: Call,
  owners: TokenOwners,
): Promise<{ token: TokenView; secret: string; previous_valid_until: number }> {
  const { id: organization } = await reachToChange(params.organization, call, owners)
  const old = await owners.accounts.token(organization, params.id)
  if (!old) throw missingToken(params.id)
  // The caller receives the new secret, so it must have all rights of the token itself.
  const granting = await grantingOf(call, organization, owners)
  await grantUser(organization, old.userId, granting, owners)
  grantScopes(old.scopes, call.caller)
  grantModels(old.models, call.caller)
  if (old.id !== call.caller.tokenId) grantLimits(old.limits, granting.limits)
  const overlapMs = body.overlap_seconds * 1000
  const rotated = await owners.accounts.rotate(organization, params.id, overlapMs, actorOf(call))
  if (!rotated) throw missingToken(params.id)
  return {
    token: tokenView(rotated.token),
    secret: rotated.secret,
    previous_valid_until: Math.floor(rotated.previousValidUntil / 1000),
  }
}
