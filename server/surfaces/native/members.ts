import { z } from 'zod'
import { grantRole } from '../../../core/accounts/grant.ts'
import { UserChange, UserCreate, UserView, userView } from '../../../core/accounts/user-view.ts'
import { isId } from '../../../core/ids.ts'
import { definedMembers } from '../../../core/members.ts'
import { array, flag, integer, namedObject, string } from '../../../core/schemas/fields.ts'
import { actorOf, grantingOf, OrganizationPath, reachOrganization, reachToChange } from '../../http/access/reach.ts'
import { deletedObject, pageFields, pageOf, pageQuery } from '../../http/answer/page.ts'
import { found } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'

const route = routeOf({ tag: 'Organizations and tokens' })
const path = '/api/organizations/:organization/members'

const One = namedObject('UserAnswer', 'One user.', { user: UserView })
const Page = namedObject('UserPage', 'A page of users.', {
  users: array('The users, newest first.', UserView),
  ...pageFields,
})
const Changed = namedObject('UserChanged', 'A changed user, and what became of the tokens.', {
  user: UserView,
  tokens_narrowed: integer('Tokens that lost scopes which the role does not allow.'),
  tokens_revoked: integer('Tokens that were revoked, because no scope was left.'),
})
const Removed = deletedObject('UserRemoved', 'Confirms that a user was removed.', ['user', 'user'], {
  tokens_revoked: integer('Tokens of the user that were revoked.'),
})

const OneUser = OrganizationPath.extend({ user: string('Id of the user: `user_…`.') })
const Force = z.strictObject({
  force: flag('`true`: also if the organization loses its last token with admin:write.'),
})

/** Returns what was found of a user. Throws Failure `not_found` if nothing was. */
const ofUser = <Found>(value: Found, id: string) => found(value, 'User', id)

type MemberOwners = Owners<'organizations'>
type UserPath = z.output<typeof OneUser>

/** Finds a user whom the caller wants to change. Throws Failure `not_found`, and `role_not_allowed` for a higher role. */
async function reachUser({ organization, user: id }: UserPath, exchange: ClientExchange, owners: MemberOwners) {
  await reachToChange(organization, exchange, owners)
  const user = ofUser(await owners.organizations.users.find(organization, id), id)
  const { role } = await grantingOf(exchange, organization, owners)
  grantRole(user.role, role, 'change')
  return { user, role }
}

const shown = async (organization: string, id: string, { organizations }: MemberOwners) =>
  userView(ofUser(await organizations.users.summary(organization, id), id))

export const memberRoutes = (owners: MemberOwners) => [
  route(`GET ${path}`, 'admin:read', {
    summary: 'List members',
    description: 'Returns the users of the organization, newest first, with the number of their tokens and last use.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OrganizationPath,
    query: z.strictObject({
      ...pageQuery(id => isId(id, 'user_')),
    }),
    response: Page,
    handle: async ({ params, query: { limit, after } }, exchange) => {
      const { id } = await reachOrganization(params.organization, exchange, owners)
      const page = { limit: limit + 1, ...(after === undefined ? {} : { after }) }
      const found = await owners.organizations.users.list(id, page)
      const { entries, end } = pageOf(found, limit)
      return { users: entries.map(userView), ...end }
    },
  }),
  route(`POST ${path}`, 'admin:write', {
    bucket: 'api',
    summary: 'Create member',
    description:
      'Adds a user to the organization. A user owns tokens: create them with `user_id`. A token of a user cannot give a higher role than the user has.',
    errorCodes: ['organization_mismatch', 'not_found', 'conflict', 'role_not_allowed', 'disk_full'],
    params: OrganizationPath,
    body: UserCreate,
    example: { name: 'Ada Lovelace', email: 'ada@example.com', role: 'member' },
    response: One,
    status: 201,
    handle: async ({ params, body }, exchange) => {
      const { id: organizationId } = await reachToChange(params.organization, exchange, owners)
      const { role } = await grantingOf(exchange, organizationId, owners)
      grantRole(body.role, role, 'add')
      const user = await owners.organizations.users.create({ organizationId, ...body }, actorOf(exchange))
      return { user: await shown(organizationId, user.id, owners) }
    },
  }),
  route(`GET ${path}/:user`, 'admin:read', {
    summary: 'Get member',
    description: 'Returns a user of the organization.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OneUser,
    response: One,
    handle: async ({ params }, exchange) => {
      await reachOrganization(params.organization, exchange, owners)
      return { user: await shown(params.organization, params.user, owners) }
    },
  }),
  route(`PATCH ${path}/:user`, 'admin:write', {
    summary: 'Update member',
    description:
      'Changes name, e-mail address or role of a user. With a lower role the tokens of the user lose the scopes that it does not allow, at once and for good. The last owner stays owner.',
    errorCodes: ['organization_mismatch', 'not_found', 'conflict', 'role_not_allowed'],
    params: OneUser,
    query: Force,
    body: UserChange,
    example: { role: 'viewer' },
    response: Changed,
    handle: async ({ params, query, body }, exchange) => {
      const { user, role } = await reachUser(params, exchange, owners)
      if (body.role !== undefined) grantRole(body.role, role, 'make someone')
      const change = definedMembers(body)
      const { users } = owners.organizations
      const done = ofUser(
        await users.update(user.organizationId, user.id, change, actorOf(exchange), query.force === 'true'),
        params.user,
      )
      return {
        user: await shown(user.organizationId, user.id, owners),
        tokens_narrowed: done.tokensNarrowed,
        tokens_revoked: done.tokensRevoked,
      }
    },
  }),
  route(`DELETE ${path}/:user`, 'admin:write', {
    summary: 'Delete member',
    description:
      'Removes a user from the organization and revokes the tokens of the user. Jobs, files and usage stay. The last owner stays.',
    errorCodes: ['organization_mismatch', 'not_found', 'conflict', 'role_not_allowed'],
    params: OneUser,
    query: Force,
    response: Removed,
    handle: async ({ params, query }, exchange) => {
      const { user } = await reachUser(params, exchange, owners)
      const { users } = owners.organizations
      const done = ofUser(
        await users.remove(user.organizationId, user.id, actorOf(exchange), query.force === 'true'),
        params.user,
      )
      return { id: user.id, object: 'user' as const, deleted: true as const, tokens_revoked: done.tokensRevoked }
    },
  }),
]
