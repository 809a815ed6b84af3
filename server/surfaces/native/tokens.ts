import { z } from 'zod'
import { maxOverlapMs } from '../../../core/accounts/accounts.ts'
import { grantLimits, grantModels, grantRole, grantScopes } from '../../../core/accounts/grant.ts'
import { SpendView, spendView } from '../../../core/accounts/spend-view.ts'
import { givenTokenLimits, TokenView, tokenFields, tokenView } from '../../../core/accounts/token-fields.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import { definedMembers } from '../../../core/members.ts'
import {
  array,
  flag,
  integer,
  namedObject,
  nullish,
  optional,
  optionalInteger,
  optionalOneOf,
  optionalString,
  optionalStringUpTo,
  strictObject,
  string,
  unixTime,
} from '../../../core/schemas/fields.ts'
import type { TokenRecord } from '../../../core/store/store.ts'
import {
  actorOf,
  type Granting,
  grantingOf,
  OrganizationPath,
  reachOrganization,
  reachToChange,
} from '../../http/access/reach.ts'
import { alwaysTrue, deletedAnswer, deletedObject, pageFields, pageOf, pageQuery } from '../../http/answer/page.ts'
import { errorGroups, found } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { once, type Unrepeatable } from '../../http/request/idempotency.ts'
import type { Owners } from '../../http/request/owners.ts'
import { filterOf } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'
import { seconds } from '../../views/view-of.ts'

const name = z.string().min(1).max(128).describe('Name of the token.')
const Scopes = z.array(z.string()).min(1).max(4)
const hundredYears = 36_500 * 86_400
const patterns = z.array(z.string().min(1).max(128)).min(1).max(100)
const scopesText = 'What the token allows: `user:read`, `user:write`, `admin:read`, `admin:write`.'
const modelsText =
  'Ids or patterns (`qwen*`) of the models that the token may use; null for all that your own token may use.'

const TokenCreate = strictObject('TokenCreate', 'A token to create.', {
  name,
  scopes: Scopes.default(['user:read', 'user:write']).describe(scopesText),
  expires_at: nullish(unixTime, 'When the token expires, in Unix seconds. Default: never.'),
  expires_in: optional(
    z.int().min(1).max(hundredYears),
    'Seconds after which the token expires. Wins over `expires_at`.',
  ),
  models: nullish(patterns, `${modelsText} Default: the same as your own token.`),
  ...tokenFields,
  user_id: tokenFields.user_id.describe(
    'Id of the user who owns it, which bounds its scopes by the role; null for nobody. Default: the user of your own token.',
  ),
})

const TokenChange = strictObject('TokenChange', 'Fields of a token to change. Absent fields stay.', {
  name: name.optional(),
  scopes: optional(Scopes, scopesText),
  status: optionalOneOf('A disabled token is refused until it is active again.', ['active', 'disabled']),
  expires_at: nullish(unixTime, 'When the token expires, in Unix seconds; null for never.'),
  models: nullish(patterns, modelsText),
  ...tokenFields,
})

const TokenRotate = strictObject('TokenRotate', 'How to replace the secret of a token.', {
  overlap_seconds: z
    .int()
    .min(0)
    .max(maxOverlapMs / 1000)
    .default(0)
    .describe('Seconds for which the old secret stays valid, 86400 at most.'),
})

type TokenOwners = Owners<'accounts' | 'organizations'>

/** Returns what was found of a token. Throws Failure `not_found` if nothing was. */
const ofToken = <Found>(value: Found, id: string) => found(value, 'Token', id)

function expiry(body: { expires_at?: number | null; expires_in?: number }) {
  if (body.expires_in !== undefined) return Date.now() + body.expires_in * 1000
  if (body.expires_at === undefined) return undefined
  if (body.expires_at !== null && body.expires_at * 1000 <= Date.now())
    throw invalid('expires_at', "'expires_at' lies in the past.")
  return body.expires_at === null ? null : body.expires_at * 1000
}

const forced = (exchange: ClientExchange) => exchange.query.get('force') === 'true'

const metadataText = (metadata: Record<string, string> | null | undefined) =>
  metadata ? JSON.stringify(metadata) : null

/**
 * Throws Failure `role_not_allowed` if the caller may not give a token to this user, or take one of his: his role may
 * not be above that of the caller's user. Unknown users are refused by the store.
 */
async function grantUser(organization: string, userId: string | null, { role }: Granting, owners: TokenOwners) {
  const user = userId === null ? undefined : await owners.organizations.users.find(organization, userId)
  if (userId === null) grantRole(null, role, 'create or change')
  else if (user) grantRole(user.role, role, 'create or change tokens of')
}

/**
 * Revokes a token. Throws Failure `not_found`, `role_not_allowed` for the token of a higher role, and `conflict` for the
 * caller's own token unless forced.
 */
async function revokeToken(organization: string, id: string, exchange: ClientExchange, owners: TokenOwners) {
  const force = forced(exchange)
  if (id === exchange.caller.tokenId && !force)
    throw new Failure('conflict', 'This is the token that you are using. Add ?force=true to revoke it anyway.')
  const { id: organizationId } = await reachOrganization(organization, exchange, owners)
  const old = ofToken(await owners.accounts.token(organizationId, id), id)
  await grantUser(organizationId, old.userId, await grantingOf(exchange, organizationId, owners), owners)
  const revoked = ofToken(await owners.accounts.revoke(organization, id, force, actorOf(exchange)), id)
  const cancels = exchange.query.get('cancel_work') === 'true'
  const answer = deletedAnswer('token', revoked.id)
  if (!cancels) return answer
  const { jobs, executions, batches } = await owners.accounts.cancelWork(organizationId, revoked.id)
  return { ...answer, jobs_cancelled: jobs, executions_cancelled: executions, batches_cancelled: batches }
}

/** Creates a token with no more rights than the caller has, and returns its secret. */
async function createToken(
  { params, body }: { params: { organization: string }; body: z.output<typeof TokenCreate> },
  exchange: ClientExchange,
  owners: TokenOwners,
): Promise<{ token: TokenView; secret: string }> {
  const { id: organizationId } = await reachToChange(params.organization, exchange, owners)
  const granting = await grantingOf(exchange, organizationId, owners)
  const userId = body.user_id === undefined ? (granting.user?.id ?? null) : body.user_id
  await grantUser(organizationId, userId, granting, owners)
  const { token, secret } = await owners.accounts.issue(
    {
      organizationId,
      name: body.name,
      scopes: grantScopes(body.scopes, exchange.caller),
      expiresAt: expiry(body),
      models: grantModels(body.models === undefined ? exchange.caller.token.models : body.models, exchange.caller),
      limits: grantLimits({ ...granting.limits, ...givenTokenLimits(body) }, granting.limits),
      userId,
      metadata: metadataText(body.metadata),
      createdBy: actorOf(exchange).tokenId,
    },
    actorOf(exchange),
  )
  return { token: tokenView(token), secret }
}

/** Changes a token, to no more rights than the caller has. */
async function updateToken(
  { params, body }: { params: { organization: string; id: string }; body: z.output<typeof TokenChange> },
  exchange: ClientExchange,
  owners: TokenOwners,
): Promise<TokenRecord> {
  const { id: organization } = await reachToChange(params.organization, exchange, owners)
  const old = ofToken(await owners.accounts.token(organization, params.id), params.id)
  const granting = await grantingOf(exchange, organization, owners)
  await grantUser(organization, old.userId, granting, owners)
  if (body.user_id !== undefined) await grantUser(organization, body.user_id, granting, owners)
  const change = definedMembers({
    name: body.name,
    ...(body.scopes === undefined ? {} : { scopes: grantScopes(body.scopes, exchange.caller) }),
    status: body.status,
    ...(body.expires_at === undefined ? {} : { expiresAt: expiry(body) }),
    ...(body.models === undefined ? {} : { models: grantModels(body.models, exchange.caller) }),
    userId: body.user_id,
    ...(body.metadata === undefined ? {} : { metadata: metadataText(body.metadata) }),
    limits: grantLimits(givenTokenLimits(body), granting.limits),
  })
  const token = ofToken(
    await owners.accounts.update(organization, params.id, change, forced(exchange), actorOf(exchange)),
    params.id,
  )
  return token
}

/** Gives a token a new secret. */
async function rotateToken(
  { params, body }: { params: { organization: string; id: string }; body: z.output<typeof TokenRotate> },
  exchange: ClientExchange,
  owners: TokenOwners,
): Promise<{ token: TokenView; secret: string; previous_valid_until: number }> {
  const { id: organization } = await reachToChange(params.organization, exchange, owners)
  const old = ofToken(await owners.accounts.token(organization, params.id), params.id)
  // The caller receives the new secret, so it must have all rights of the token itself.
  const granting = await grantingOf(exchange, organization, owners)
  await grantUser(organization, old.userId, granting, owners)
  grantScopes(old.scopes, exchange.caller)
  grantModels(old.models, exchange.caller)
  if (old.id !== exchange.caller.tokenId) grantLimits(old.limits, granting.limits)
  const overlapMs = body.overlap_seconds * 1000
  const rotated = ofToken(
    await owners.accounts.rotate(organization, params.id, overlapMs, actorOf(exchange)),
    params.id,
  )
  return {
    token: tokenView(rotated.token),
    secret: rotated.secret,
    previous_valid_until: seconds(rotated.previousValidUntil),
  }
}

const route = routeOf({ tag: 'Organizations and tokens' })

const secret = string('The secret, `sk-infer-…`. It is shown only this once.')
const Created = namedObject('TokenCreated', 'A new token.', { token: TokenView, secret })
const TokenWithSpend = TokenView.extend({
  spend: SpendView.describe(
    'What it has spent this month, with the secrets that it had before and with the tokens that share its budget, and its limit.',
  ),
}).meta({ id: 'TokenWithSpend', description: 'An API token without its secret, and what it has spent.' })
const One = namedObject('TokenAnswer', 'One token.', { token: TokenWithSpend })
const Page = namedObject('TokenPage', 'A page of tokens.', {
  tokens: array('The tokens, newest first.', TokenWithSpend),
  ...pageFields,
})
const Rotated = namedObject('TokenRotated', 'A token with its new secret.', {
  token: TokenView,
  secret,
  previous_valid_until: integer('Unix seconds until which the old secret is valid.'),
})
const Deleted = deletedObject('TokenDeleted', 'Confirms that a token was revoked.', ['token', 'token'], {
  ...alwaysTrue,
  jobs_cancelled: optionalInteger('With `cancel_work`: cancelled jobs, without those of executions and batches.'),
  executions_cancelled: optionalInteger('With `cancel_work`: cancelled executions of workflows.'),
  batches_cancelled: optionalInteger('With `cancel_work`: cancelled batches.'),
})

const Force = z.strictObject({
  force: optionalString('`true`: also if it locks out the caller or the last administrator.'),
})
const Revocation = Force.extend({
  cancel_work: flag('`true`: also cancel the batches, executions and jobs that the token began. Default: they go on.'),
})
const Organization = OrganizationPath
const OneToken = Organization.extend({ id: string('Id of the token: `tok_…`.') })

/** The answer to a repeated request with the same key: the secret is not stored, so it names the created token. */
const shownOnce = ({ token }: { token: { id: string } }): Unrepeatable => ({
  message: `This 'Idempotency-Key' has created the token ${token.id}. Its secret was shown once and is not stored. If it was lost, revoke that token and send the request with a new key.`,
  facts: { token_id: token.id },
})

const base = '/api/organizations/:organization/tokens'
const whenEffective =
  'It takes effect with the next request. Jobs, executions and batches that were accepted before go on.'

/** For requests that give rights to a token. */
const grantCodes = ['organization_mismatch', 'not_found', 'model_not_allowed', 'role_not_allowed'] as const

const revokeFacts = {
  summary: 'Revoke token',
  description: `Revokes a token for good. ${whenEffective} With \`?cancel_work=true\` they are cancelled.`,
  errorCodes: ['organization_mismatch', 'not_found', 'conflict', 'role_not_allowed'],
  params: OneToken,
  query: Revocation,
  response: Deleted,
} as const

const withSpend = (token: TokenRecord, { spend }: Owners<'spend'>) => ({
  ...tokenView(token),
  spend: spendView(spend.ofToken(token)),
})

export const tokenRoutes = (owners: TokenOwners & Owners<'idempotency' | 'spend'>) => [
  route(`POST ${base}`, 'admin:write', {
    bucket: 'api',
    summary: 'Create token',
    description:
      'Creates a token and returns its secret, which is shown only this once. A token cannot give more than it has itself: scopes, models, limits and hours. Limits that are absent are those of your own token.',
    errorCodes: [...grantCodes, 'invalid_scope', 'disk_full', ...errorGroups.keyed],
    params: Organization,
    body: TokenCreate,
    example: {
      name: 'notebook',
      scopes: ['user:read', 'user:write'],
      expires_in: 2_592_000,
      rate_limit: { api: 120, jobs: 20 },
      monthly_spend_limit: 25,
    },
    response: Created,
    status: 201,
    handle: (input, exchange) => once(exchange, input, () => createToken(input, exchange, owners), shownOnce, owners),
  }),
  route(`GET ${base}`, 'admin:read', {
    summary: 'List tokens',
    description:
      'Returns the tokens of the organization, newest first, without their secrets and with what each has spent this month.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: Organization,
    query: z.strictObject({
      ...pageQuery(id => isId(id, 'tok_')),
      status: optionalOneOf('Only tokens with this status.', ['active', 'disabled', 'revoked', 'expired']),
      user_id: optionalStringUpTo(64, 'Only tokens of this user.'),
      q: optionalStringUpTo(256, 'Words that the name must contain, in any case.'),
    }),
    response: Page,
    handle: async ({ params, query: { q, ...query } }, exchange) => {
      const { id } = await reachOrganization(params.organization, exchange, owners)
      const page = { ...filterOf(query), limit: query.limit + 1 }
      const found = await owners.accounts.list(id, { ...page, ...(q === undefined ? {} : { search: q }) })
      const { entries, end } = pageOf(found, query.limit)
      return { tokens: entries.map(token => withSpend(token, owners)), ...end }
    },
  }),
  route(`GET ${base}/:id`, 'admin:read', {
    summary: 'Get token',
    description: 'Returns a token without its secret, and what it has spent this month.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OneToken,
    response: One,
    handle: async ({ params }, exchange) => {
      const { id } = await reachOrganization(params.organization, exchange, owners)
      const token = ofToken(await owners.accounts.token(id, params.id), params.id)
      return { token: withSpend(token, owners) }
    },
  }),
  route(`PATCH ${base}/:id`, 'admin:write', {
    summary: 'Update token',
    description: `Renames, disables or enables a token, or changes its scopes, models, limits, user or expiry. ${whenEffective}`,
    errorCodes: [...grantCodes, 'invalid_scope', 'conflict'],
    params: OneToken,
    query: Force,
    body: TokenChange,
    example: { name: 'notebook', status: 'disabled' },
    response: One,
    handle: async (input, exchange) => ({ token: withSpend(await updateToken(input, exchange, owners), owners) }),
  }),
  route(`DELETE ${base}/:id`, 'admin:write', {
    ...revokeFacts,
    handle: ({ params }, exchange) => revokeToken(params.organization, params.id, exchange, owners),
  }),
  route(`POST ${base}/:id/revoke`, 'admin:write', {
    ...revokeFacts,
    bucket: 'api',
    handle: ({ params }, exchange) => revokeToken(params.organization, params.id, exchange, owners),
  }),
  route(`POST ${base}/:id/rotate`, 'admin:write', {
    bucket: 'api',
    summary: 'Rotate token',
    description:
      'Gives a token a new secret, which is shown only this once. The old secret stays valid for `overlap_seconds`.',
    errorCodes: [
      'organization_mismatch',
      'not_found',
      'model_not_allowed',
      'role_not_allowed',
      'disk_full',
      ...errorGroups.keyed,
    ],
    params: OneToken,
    body: TokenRotate,
    example: { overlap_seconds: 3600 },
    response: Rotated,
    handle: (input, exchange) => once(exchange, input, () => rotateToken(input, exchange, owners), shownOnce, owners),
  }),
]
