import { allPages, type Client, dataOf } from '../client/client.ts'
import { printable } from '../terminal/styled-line.ts'
import { ownOrganization, usersOf } from './account-client.ts'

const tokens = '/api/organizations/{organization}/tokens'

/** All tokens of an organization, newest first. */
export const tokensOf = (
  { api }: Client,
  organization: string,
  status?: 'active' | 'disabled' | 'revoked' | 'expired',
) =>
  allPages(async (after, limit) => {
    const page = await dataOf(api.GET(tokens, { params: { path: { organization }, query: { limit, status, after } } }))
    return { ...page, entries: page.tokens }
  })

/**
 * The names of these tokens, and the e-mail addresses of these users, by id. Asks only for what is needed; what was
 * deleted has no name.
 */
export async function namesOf(
  client: Client,
  organization: string,
  ids: readonly (string | null | undefined)[],
): Promise<Map<string, string>> {
  const has = (prefix: string) => ids.some(id => id?.startsWith(prefix))
  const users = has('user_') ? await usersOf(client, organization) : []
  const owned = has('tok_') ? await tokensOf(client, organization) : []
  return new Map([
    ...users.map(({ id, email }) => [id, printable(email)] as const),
    ...owned.map(({ id, name }) => [id, printable(name)] as const),
  ])
}

/** The names of the workflows of an organization, by id; undefined if the token of the client is of another one. */
export async function workflowNames(client: Client, organization: string): Promise<Map<string, string> | undefined> {
  if (!client.isInProcess && (await ownOrganization(client)).id !== organization) return undefined
  const { api } = client.isInProcess ? client.withToken(organization) : client
  const workflows = await allPages(async (after, limit) => {
    const page = await dataOf(api.GET('/api/workflows', { params: { query: { limit, after } } }))
    return { ...page, entries: page.workflows }
  })
  return new Map(workflows.map(({ id, name }) => [id, printable(name)] as const))
}
