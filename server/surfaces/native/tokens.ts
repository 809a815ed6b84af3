import { z } from 'zod'
import { SpendView, spendView } from '../../../core/accounts/spend-view.ts'
import { TokenView, tokenView } from '../../../core/accounts/token-fields.ts'
import { isId } from '../../../core/ids.ts'
import type { TokenRecord } from '../../../core/store/store.ts'
import { OrganizationPath, reachOrganization } from '../../http/access/reach.ts'
import { cursorDescription, pageFields, pageLimit } from '../../http/answer/page.ts'
import { once, type Unrepeatable } from '../../http/request/idempotency.ts'
import type { Owners } from '../../http/request/owners.ts'
import { route } from '../../http/request/route.ts'
import { createToken, missingToken, revokeToken, rotateToken, type TokenOwners, updateToken } from './token-changes.ts'
import { TokenChange, TokenCreate, TokenRotate } from './token-request.ts'

const tag = 'Organizations and tokens'

const secret = z.string().describe('The secret, `sk-infer-…`. It is shown only this once.')
const Created = z.object({ token: TokenView, secret }).meta({ id: 'TokenCreated', description: 'A new token.' })
const TokenWithSpend = TokenView.extend({
  spend: SpendView.describe('What it has spent this month with the secrets that it had before, and its limit.'),
}).meta({ id: 'TokenWithSpend', description: 'An API token without its secret, and what it has spent.' })
const One = z.object({ token: TokenWithSpend }).meta({ id: 'TokenAnswer', description: 'One token.' })
const Page = z
  .object({ tokens: z.array(TokenWithSpend).describe('The tokens, newest first.'), ...pageFields })
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
const Organization = OrganizationPath
const OneToken = Organization.extend({ id: z.string().describe('Id of the token: `tok_…`.') })

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
  errorCodes: ['organization_mismatch', 'not_found', 'conflict', 'role_not_allowed'],
  params: OneToken,
  query: Force,
  response: Deleted,
} as const

const withSpend = (token: TokenRecord, { spend }: Pick<Owners, 'spend'>) => ({
  ...tokenView(token),
  spend: spendView(spend.ofToken(token.originId, token.limits.monthlySpendLimit)),
})

export const tokenRoutes = (owners: TokenOwners & Pick<Owners, 'idempotency' | 'spend'>) => [
  route({
    method: 'POST',
    path: base,
    scope: 'admin:write',
    bucket: 'api',
    tag,
    summary: 'Create token',
    description:
      'Creates a token and returns its secret, which is shown only this once. A token cannot give more than it has itself: scopes, models, limits and hours. Limits that are absent are those of your own token.',
    errorCodes: [
      'organization_mismatch',
      'not_found',
      'invalid_scope',
      'model_not_allowed',
      'role_not_allowed',
      'disk_full',
      ...keyed,
    ],
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
    handle: (input, call) => once(call, input, () => createToken(input, call, owners), shownOnce, owners),
  }),
  route({
    method: 'GET',
    path: base,
    scope: 'admin:read',
    tag,
    summary: 'List tokens',
    description:
      'Returns the tokens of the organization, newest first, without their secrets and with what each has spent this month.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: Organization,
    query: z.strictObject({
      limit: pageLimit,
      after: z
        .string()
        .refine(id => isId(id) && id.startsWith('tok_'), 'This is no cursor of the list.')
        .optional()
        .describe(cursorDescription),
      status: z.enum(['active', 'disabled', 'revoked', 'expired']).optional().describe('Only tokens with this status.'),
      user_id: z.string().max(64).optional().describe('Only tokens of this user.'),
    }),
    response: Page,
    handle: async ({ params, query }, call) => {
      const { id } = await reachOrganization(params.organization, call, owners)
      const { limit, after, status, user_id: userId } = query
      const found = await owners.accounts.list(id, {
        limit: limit + 1,
        ...(after === undefined ? {} : { after }),
        ...(status === undefined ? {} : { status }),
        ...(userId === undefined ? {} : { userId }),
      })
      const page = found.slice(0, query.limit)
      const more = found.length > query.limit
      return {
        tokens: page.map(token => withSpend(token, owners)),
        has_more: more,
        next_cursor: more ? page.at(-1)!.id : null,
      }
    },
  }),
  route({
    method: 'GET',
    path: `${base}/:id`,
    scope: 'admin:read',
    tag,
    summary: 'Get token',
    description: 'Returns a token without its secret, and what it has spent this month.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OneToken,
    response: One,
    handle: async ({ params }, call) => {
      const { id } = await reachOrganization(params.organization, call, owners)
      const token = await owners.accounts.token(id, params.id)
      if (!token) throw missingToken(params.id)
      return { token: withSpend(token, owners) }
    },
  }),
  route({
    method: 'PATCH',
    path: `${base}/:id`,
    scope: 'admin:write',
    tag,
    summary: 'Update token',
    description: `Renames, disables or enables a token, or changes its scopes, models, limits, user or expiry. ${whenEffective}`,
    errorCodes: [
      'organization_mismatch',
      'not_found',
      'conflict',
      'invalid_scope',
      'model_not_allowed',
      'role_not_allowed',
    ],
    params: OneToken,
    query: Force,
    body: TokenChange,
    example: { name: 'notebook', status: 'disabled' },
    response: One,
    handle: async (input, call) => ({ token: withSpend(await updateToken(input, call, owners), owners) }),
  }),
  route({
    ...revokeFacts,
    method: 'DELETE',
    path: `${base}/:id`,
    handle: ({ params }, call) => revokeToken(params.organization, params.id, call, owners),
  }),
  route({
    ...revokeFacts,
    method: 'POST',
    path: `${base}/:id/revoke`,
    bucket: 'api',
    handle: ({ params }, call) => revokeToken(params.organization, params.id, call, owners),
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
    errorCodes: ['organization_mismatch', 'not_found', 'model_not_allowed', 'role_not_allowed', 'disk_full', ...keyed],
    params: OneToken,
    body: TokenRotate,
    example: { overlap_seconds: 3600 },
    response: Rotated,
    handle: (input, call) => once(call, input, () => rotateToken(input, call, owners), shownOnce, owners),
  }),
]
