import { z } from 'zod'
import { grantModels, grantScopes } from '../../core/accounts/grant.ts'
import { TokenView, tokenView } from '../../core/accounts/token-view.ts'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import type { Call } from '../call.ts'
import { once, type Unrepeatable } from '../idempotency.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { cursorText, pageFields, pageLimit } from './page.ts'
import { TokenChange, TokenCreate, TokenRotate } from './token-request.ts'

const tag = 'Organizations and tokens'
const seconds = (ms: number | null) => (ms === null ? null : Math.floor(ms / 1000))

const secret = z.string().describe('The secret, `sk-infer-…`. It is shown only this once.')
const Created = z.object({ token: TokenView, secret }).meta({ id: 'TokenCreated', description: 'A new token.' })
const One = z.object({ token: TokenView }).meta({ id: 'TokenAnswer', description: 'One token.' })
const Page = z
  .object({ tokens: z.array(TokenView).describe('The tokens, newest first.'), ...pageFields })
  .meta({ id: 'TokenPage', description: 'A page of tokens.' })
const Rotated = z
  .object({
    token: TokenView,
    secret,
    previous_valid_until: z.int().describe('Unix seconds until which the old secret is valid.'),
  })
  .meta({ id: 'TokenRotated', description: 'A token with its new secret.' })
const Deleted = z
  .object({
    id: z.string().describe('Id of the token.'),
    object: z.literal('token'),
    deleted: z.boolean().describe('Always true.'),
  })
  .meta({ id: 'TokenDeleted', description: 'Confirms that a token was revoked.' })

const Force = z.strictObject({
  force: z.string().optional().describe('`true`: also if it locks out the caller or the last administrator.'),
})
const Organization = z.object({
  organization: z.string().describe('Id of the organization of your token, as in `GET /api/me`.'),
})
const OneToken = Organization.extend({ id: z.string().describe('Id of the token: `tok_…`.') })

/**
 * Returns the organization of the path if it is the caller's. Throws the same Failure for any other, existing or not.
 */
function ownOrganization(organization: string, call: Call): string {
  if (organization === call.caller.organizationId) return organization
  throw new Failure(
    'organization_mismatch',
    `This token belongs to the organization ${call.caller.organizationId}, not to the one in the path.`,
  )
}

const missing = (id: string) => new Failure('not_found', `Token ${id.slice(0, 64)} was not found.`)

function expiry(body: { expires_at?: number | null; expires_in?: number }): number | null | undefined {
  if (body.expires_in !== undefined) return Date.now() + body.expires_in * 1000
  if (body.expires_at === undefined) return undefined
  if (body.expires_at !== null && body.expires_at * 1000 <= Date.now())
    throw new Failure('invalid_value', "'expires_at' lies in the past.", { param: 'expires_at' })
  return body.expires_at === null ? null : body.expires_at * 1000
}

const forced = (call: Call): boolean => call.query.get('force') === 'true'

type TokenOwners = Pick<Owners, 'accounts' | 'idempotency'>

async function revoke(
  organization: string,
  id: string,
  call: Call,
  { accounts }: TokenOwners,
): Promise<z.input<typeof Deleted>> {
  const force = forced(call)
  if (id === call.caller.tokenId && !force)
    throw new Failure('conflict', 'This is the token that you are using. Add ?force=true to revoke it anyway.')
  const revoked = await accounts.revoke(ownOrganization(organization, call), id, force)
  if (!revoked) throw missing(id)
  return { id: revoked.id, object: 'token', deleted: true }
}

async function create(
  { params, body }: { params: z.output<typeof Organization>; body: z.output<typeof TokenCreate> },
  call: Call,
  { accounts }: TokenOwners,
): Promise<z.input<typeof Created>> {
  const { token, secret } = await accounts.issue({
    organizationId: ownOrganization(params.organization, call),
    name: body.name,
    scopes: grantScopes(body.scopes, call.caller),
    expiresAt: expiry(body),
    models: grantModels(body.models === undefined ? call.caller.token.models : body.models, call.caller),
    createdBy: call.caller.tokenId,
  })
  return { token: tokenView(token), secret }
}

async function rotate(
  { params, body }: { params: z.output<typeof OneToken>; body: z.output<typeof TokenRotate> },
  call: Call,
  { accounts }: TokenOwners,
): Promise<z.input<typeof Rotated>> {
  const organization = ownOrganization(params.organization, call)
  const old = await accounts.token(organization, params.id)
  if (!old) throw missing(params.id)
  // The caller receives the new secret, so it must have all rights of the token itself.
  grantScopes(old.scopes, call.caller)
  grantModels(old.models, call.caller)
  const rotated = await accounts.rotate(organization, params.id, body.overlap_seconds * 1000)
  if (!rotated) throw missing(params.id)
  return {
    token: tokenView(rotated.token),
    secret: rotated.secret,
    previous_valid_until: seconds(rotated.previousValidUntil)!,
  }
}

/** The answer to a repeated request with the same key: the secret is not stored, so it names the created token. */
const shownOnce = ({ token }: { token: { id: string } }): Unrepeatable => ({
  message: `This 'Idempotency-Key' has created the token ${token.id}. Its secret was shown once and is not stored. If it was lost, revoke that token and send the request with a new key.`,
  facts: { token_id: token.id },
})

const base = '/api/organizations/:organization/tokens'
const whenEffective =
  'It takes effect with the next request. Jobs and executions that were accepted before still run: cancel them if they must not.'

/** Error codes of requests with an `Idempotency-Key`. */
const keyed = ['conflict', 'idempotency_key_in_use', 'idempotency_key_reused'] as const

const revokeFacts = {
  scope: 'admin:write',
  tag,
  summary: 'Revoke token',
  description: `Revokes a token for good. ${whenEffective}`,
  errorCodes: ['organization_mismatch', 'not_found', 'conflict'],
  params: OneToken,
  query: Force,
  response: Deleted,
} as const

export const tokenRoutes = (owners: TokenOwners) => [
  route({
    method: 'POST',
    path: base,
    scope: 'admin:write',
    bucket: 'api',
    tag,
    summary: 'Create token',
    description:
      'Creates a token and returns its secret, which is shown only this once. A token cannot give more scopes or models than it has itself.',
    errorCodes: ['organization_mismatch', 'invalid_scope', 'model_not_allowed', 'unsupported_parameter', ...keyed],
    params: Organization,
    body: TokenCreate,
    example: { name: 'notebook', scopes: ['user:read', 'user:write'], expires_in: 2_592_000 },
    response: Created,
    status: 201,
    handle: (input, call) => once(call, input, () => create(input, call, owners), shownOnce, owners),
  }),
  route({
    method: 'GET',
    path: base,
    scope: 'admin:read',
    tag,
    summary: 'List tokens',
    description: 'Returns the tokens of the organization, newest first, without their secrets.',
    errorCodes: ['organization_mismatch'],
    params: Organization,
    query: z.strictObject({
      limit: pageLimit,
      after: z
        .string()
        .refine(id => isId(id) && id.startsWith('tok_'), 'This is no cursor of the list.')
        .optional()
        .describe(cursorText),
      status: z.enum(['active', 'disabled', 'revoked', 'expired']).optional().describe('Only tokens with this status.'),
    }),
    response: Page,
    handle: async ({ params, query }, call) => {
      const found = await owners.accounts.list(ownOrganization(params.organization, call), {
        ...query,
        limit: query.limit + 1,
      })
      const page = found.slice(0, query.limit)
      const more = found.length > query.limit
      return { tokens: page.map(token => tokenView(token)), has_more: more, next_cursor: more ? page.at(-1)!.id : null }
    },
  }),
  route({
    method: 'GET',
    path: `${base}/:id`,
    scope: 'admin:read',
    tag,
    summary: 'Get token',
    description: 'Returns a token without its secret.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OneToken,
    response: One,
    handle: async ({ params }, call) => {
      const token = await owners.accounts.token(ownOrganization(params.organization, call), params.id)
      if (!token) throw missing(params.id)
      return { token: tokenView(token) }
    },
  }),
  route({
    method: 'PATCH',
    path: `${base}/:id`,
    scope: 'admin:write',
    tag,
    summary: 'Update token',
    description: `Renames, disables or enables a token, or changes its scopes, models or expiry. ${whenEffective}`,
    errorCodes: [
      'organization_mismatch',
      'not_found',
      'conflict',
      'invalid_scope',
      'model_not_allowed',
      'unsupported_parameter',
    ],
    params: OneToken,
    query: Force,
    body: TokenChange,
    example: { name: 'notebook', status: 'disabled' },
    response: One,
    handle: async ({ params, body }, call) => {
      const change = {
        ...(body.name === undefined ? {} : { name: body.name }),
        ...(body.scopes === undefined ? {} : { scopes: grantScopes(body.scopes, call.caller) }),
        ...(body.status === undefined ? {} : { status: body.status }),
        ...(body.expires_at === undefined ? {} : { expiresAt: expiry(body) }),
        ...(body.models === undefined ? {} : { models: grantModels(body.models, call.caller) }),
      }
      const organization = ownOrganization(params.organization, call)
      const token = await owners.accounts.update(organization, params.id, change, forced(call))
      if (!token) throw missing(params.id)
      return { token: tokenView(token) }
    },
  }),
  route({
    ...revokeFacts,
    method: 'DELETE',
    path: `${base}/:id`,
    handle: ({ params }, call) => revoke(params.organization, params.id, call, owners),
  }),
  route({
    ...revokeFacts,
    method: 'POST',
    path: `${base}/:id/revoke`,
    bucket: 'api',
    handle: ({ params }, call) => revoke(params.organization, params.id, call, owners),
  }),
  route({
    method: 'POST',
    path: `${base}/:id/rotate`,
    scope: 'admin:write',
    bucket: 'api',
    tag,
    summary: 'Rotate token',
    description:
      'Gives a token a new secret, which is shown only this once. The old secret stays valid for `overlap_seconds`.',
    errorCodes: ['organization_mismatch', 'not_found', 'model_not_allowed', ...keyed],
    params: OneToken,
    body: TokenRotate,
    example: { overlap_seconds: 3600 },
    response: Rotated,
    handle: (input, call) => once(call, input, () => rotate(input, call, owners), shownOnce, owners),
  }),
]
