import { z } from 'zod'
import { longestOverlapMs } from '../../core/accounts/accounts.ts'
import { grantModels, grantScopes } from '../../core/accounts/grant.ts'
import { TokenView, tokenView } from '../../core/accounts/token-view.ts'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import { notImplemented } from '../../core/schemas/not-implemented.ts'
import type { Call } from '../call.ts'
import { once, type Unrepeatable } from '../idempotency.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'

const tag = 'Organizations and tokens'
const seconds = (ms: number | null) => (ms === null ? null : Math.floor(ms / 1000))

const name = z.string().min(1).max(128)
const Scopes = z.array(z.string()).min(1).max(4)
const patterns = z.array(z.string().min(1).max(128)).min(1).max(100)

const Create = z
  .strictObject({
    name,
    scopes: Scopes.default(['user:read', 'user:write']),
    expires_at: z.int().nullish(),
    expires_in: z.int().min(1).optional(),
    models: patterns.nullish(),
    rate_limit: notImplemented,
    monthly_spend_limit: notImplemented,
    metadata: notImplemented,
  })
  .meta({ id: 'TokenCreate' })
const Change = z
  .strictObject({
    name: name.optional(),
    scopes: Scopes.optional(),
    status: z.enum(['active', 'disabled']).optional(),
    expires_at: z.int().nullish(),
    models: patterns.nullish(),
    rate_limit: notImplemented,
    monthly_spend_limit: notImplemented,
    metadata: notImplemented,
  })
  .meta({ id: 'TokenChange' })
const Rotate = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(longestOverlapMs / 1000)
      .default(0),
  })
  .meta({ id: 'TokenRotate' })
const Created = z.object({ token: TokenView, secret: z.string() }).meta({ id: 'TokenCreated' })
const One = z.object({ token: TokenView }).meta({ id: 'TokenAnswer' })
const Page = z
  .object({ tokens: z.array(TokenView), has_more: z.boolean(), next_cursor: z.string().nullable() })
  .meta({ id: 'TokenPage' })
const Rotated = z
  .object({ token: TokenView, secret: z.string(), previous_valid_until: z.int() })
  .meta({ id: 'TokenRotated' })
const Deleted = z
  .object({ id: z.string(), object: z.literal('token'), deleted: z.boolean() })
  .meta({ id: 'TokenDeleted' })

const Force = z.strictObject({
  force: z.string().optional().describe('`true`: also where it locks the caller out.'),
})
const Organization = z.object({ organization: z.string() })
const OneToken = z.object({ organization: z.string(), id: z.string() })

/** The caller's own organization is the only one there is: any other, existing or not, is a mismatch. */
function own(organization: string, call: Call): string {
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
    throw new Failure('conflict', 'This is the token that you are using. Add ?force=true to revoke it all the same.')
  const revoked = await accounts.revoke(own(organization, call), id, force)
  if (!revoked) throw missing(id)
  return { id: revoked.id, object: 'token', deleted: true }
}

async function create(
  { params, body }: { params: z.output<typeof Organization>; body: z.output<typeof Create> },
  call: Call,
  { accounts }: TokenOwners,
): Promise<z.input<typeof Created>> {
  const { token, secret } = await accounts.issue({
    organizationId: own(params.organization, call),
    name: body.name,
    scopes: grantScopes(body.scopes, call.caller),
    expiresAt: expiry(body),
    models: grantModels(body.models === undefined ? call.caller.token.models : body.models, call.caller),
    createdBy: call.caller.tokenId,
  })
  return { token: tokenView(token), secret }
}

async function rotate(
  { params, body }: { params: z.output<typeof OneToken>; body: z.output<typeof Rotate> },
  call: Call,
  { accounts }: TokenOwners,
): Promise<z.input<typeof Rotated>> {
  const organization = own(params.organization, call)
  const old = await accounts.token(organization, params.id)
  if (!old) throw missing(params.id)
  // Its next secret is given away here, with all that it may do.
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

/** A secret is not kept, so whoever sends the same request again under its key is told which token it made. */
const shownOnce = ({ token }: { token: { id: string } }): Unrepeatable => ({
  message: `This 'Idempotency-Key' has made the token ${token.id}. Its secret was shown once and is not kept: if it was lost, revoke that token and send a new key.`,
  facts: { token_id: token.id },
})

const base = '/api/organizations/:organization/tokens'
const takenBack =
  'It counts for every request from then on. What was accepted before is carried out, jobs and executions with all their nodes: cancel what is not to run.'

const revokeFacts = {
  scope: 'admin:write',
  tag,
  summary: 'Revoke a token, at once',
  description: takenBack,
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
    summary: 'Create a token; its secret is shown this once',
    params: Organization,
    body: Create,
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
    summary: 'List tokens, newest first',
    params: Organization,
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(100).default(20),
      after: z
        .string()
        .refine(id => isId(id) && id.startsWith('tok_'), 'This is no cursor of the list.')
        .optional(),
      status: z.enum(['active', 'disabled', 'revoked', 'expired']).optional(),
    }),
    response: Page,
    handle: async ({ params, query }, call) => {
      const found = await owners.accounts.list(own(params.organization, call), { ...query, limit: query.limit + 1 })
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
    summary: 'Look one token up',
    params: OneToken,
    response: One,
    handle: async ({ params }, call) => {
      const token = await owners.accounts.token(own(params.organization, call), params.id)
      if (!token) throw missing(params.id)
      return { token: tokenView(token) }
    },
  }),
  route({
    method: 'PATCH',
    path: `${base}/:id`,
    scope: 'admin:write',
    tag,
    summary: 'Rename, disable, enable or narrow a token',
    description: takenBack,
    params: OneToken,
    query: Force,
    body: Change,
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
      const organization = own(params.organization, call)
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
    summary: 'Replace a token; the old one may live on for up to a day',
    params: OneToken,
    body: Rotate,
    example: { overlap_seconds: 3600 },
    response: Rotated,
    handle: (input, call) => once(call, input, () => rotate(input, call, owners), shownOnce, owners),
  }),
]
