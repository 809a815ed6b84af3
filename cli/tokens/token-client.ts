import type { TokenView } from '../../core/accounts/token-fields.ts'
import type { Scope, TokenStatus } from '../../core/store/store.ts'
import { forced, organizationIdFor, reachedOrganizations, userFor, withClient } from '../accounts/account-client.ts'
import { namesOf, tokensOf } from '../accounts/names.ts'
import { type Client, dataOf, memberOf } from '../client/client.ts'
import { ifFound, orAbsent } from '../client/refusal.ts'
import { refused } from '../terminal/exit-codes.ts'
import type { TokenFields } from './token-options.ts'

/** Settings of a token. What is undefined stays; of a new token it is the server's default. */
interface TokenOptions extends TokenFields {
  /** Id or name of the organization; undefined for the only one. */
  organization: string | undefined
  name: string | undefined
  scopes: Scope[] | undefined
  /** Epoch milliseconds. */
  expires: number | 'never' | undefined
  /** Null for all. */
  models: string[] | null | undefined
  /** Id or e-mail address of the user who owns it; null for nobody. */
  user: string | null | undefined
}

/** Unix seconds, rounded up so that no token ends early; null for never. */
const expiry = (expires: TokenOptions['expires']) =>
  expires === 'never' ? null : expires === undefined ? undefined : Math.ceil(expires / 1000)

const tokens = '/api/organizations/{organization}/tokens'
const one = '/api/organizations/{organization}/tokens/{id}'

/** Manages tokens. The token of the client needs the scopes admin:read and admin:write. */
export function openTokenClient(client: Client) {
  const { api } = client

  const organizationOf = (organization: string | undefined) =>
    organizationIdFor(client, organization, { mayBeDeleted: false })

  const find = (organization: string, id: string): Promise<TokenView> =>
    memberOf(api.GET(one, { params: { path: { organization, id } } }), 'token')

  /** The path of a token. Without an organization it is searched in all that the client reaches. */
  async function pathOf(id: string, organization: string | undefined) {
    if (organization !== undefined) return { path: { organization: await organizationOf(organization), id } }
    const [first, ...others] = await reachedOrganizations(client)
    if (first && others.length === 0) return { path: { organization: first.id, id } }
    for (const candidate of first ? [first, ...others] : [])
      if (await ifFound(find(candidate.id, id))) return { path: { organization: candidate.id, id } }
    throw refused('not_found', noToken(id))
  }

  /** Finds the user with this id or e-mail address; null and absent stay so. A server is not asked about an id. */
  const userIdOf = async (organization: string, user: string | null | undefined) =>
    user == null || (!client.isInProcess && !user.includes('@')) ? user : (await userFor(client, organization, user)).id

  return {
    async create(
      options: TokenOptions & { name: string; scopes: Scope[] },
    ): Promise<{ token: TokenView; secret: string }> {
      const { organization: idOrName, expires, user, rates, fields, ...more } = options
      const organization = await organizationOf(idOrName)
      const body = {
        ...more,
        expires_at: expiry(expires),
        rate_limit: newRates(rates),
        user_id: await userIdOf(organization, user),
        ...fields,
      }
      return dataOf(api.POST(tokens, { params: { path: { organization } }, body }))
    },

    /** Throws Failure `not_found`. */
    async get(id: string, organization: string | undefined): Promise<TokenView> {
      const { path } = await pathOf(id, organization)
      return withoutSpend(await existing(id, find(path.organization, id)))
    },

    /** Returns all tokens, newest first, and the e-mail addresses of their owners by id. */
    async list(options: { organization: string | undefined; status: TokenStatus | undefined }) {
      const organization = await organizationOf(options.organization)
      const tokens = await tokensOf(client, organization, options.status)
      const owners = tokens.map(({ user_id }) => user_id)
      return { tokens: tokens.map(withoutSpend), owners: await namesOf(client, organization, owners) }
    },

    /** Throws Failure `not_found`, or `conflict` when `force` is necessary. */
    async update(
      id: string,
      options: TokenOptions & { force: boolean; status: 'active' | 'disabled' | undefined },
    ): Promise<TokenView> {
      const { organization, force, user, expires, rates, fields, ...more } = options
      const { path } = await pathOf(id, organization)
      const body = {
        ...more,
        expires_at: expiry(expires),
        rate_limit: await changedRates(rates, () => existing(id, find(path.organization, id))),
        user_id: await userIdOf(path.organization, user),
        ...fields,
      }
      const changed = memberOf(api.PATCH(one, { params: { path, ...forced(force) }, body }), 'token')
      return withoutSpend(await existing(id, changed))
    },

    /**
     * Returns how much `cancelWork` has cancelled. Throws Failure `not_found`, or `conflict` when `force` is necessary.
     */
    async revoke(id: string, options: { organization: string | undefined; force: boolean; cancelWork: boolean }) {
      const { organization, force, cancelWork } = options
      const query = { ...forced(force).query, ...(cancelWork ? { cancel_work: 'true' as const } : {}) }
      const params = { ...(await pathOf(id, organization)), query }
      return existing(id, dataOf(api.DELETE(one, { params })))
    },

    async rotate(id: string, { organization, overlapMs }: { organization: string | undefined; overlapMs: number }) {
      const body = { overlap_seconds: Math.round(overlapMs / 1000) }
      const params = await pathOf(id, organization)
      return existing(id, dataOf(api.POST(`${one}/rotate`, { params, body })))
    },
  }
}
export type TokenClient = ReturnType<typeof openTokenClient>

function withoutSpend({ spend: _spend, ...token }: TokenView & { spend?: unknown }): TokenView {
  return token
}

/** Runs work with the tokens of a server, or of the data directory. */
export const withTokenClient = (
  dataDir: string | undefined,
  work: (client: TokenClient) => Promise<void>,
): Promise<void> => withClient(dataDir, client => work(openTokenClient(client)))

const noToken = (id: string): string => `There is no token '${id}' here. See: infer token list`
const existing = <T>(id: string, call: Promise<T>): Promise<T> => orAbsent(call, noToken(id))

/**
 * The rate limits after a change, as the API takes them: both at once. Undefined if none changes. `current` is called
 * only where one of them stays.
 */
async function changedRates(
  { api, jobs }: TokenFields['rates'],
  current: () => Promise<Pick<TokenView, 'rate_limit'>>,
): Promise<{ api: number | null; jobs: number | null } | undefined> {
  if (api === undefined && jobs === undefined) return undefined
  if (api !== undefined && jobs !== undefined) return { api, jobs }
  const { rate_limit: now } = await current()
  return { api: api === undefined ? now.api : api, jobs: jobs === undefined ? now.jobs : jobs }
}

/** The rate limits of a new token; undefined if none is given. */
const newRates = ({ api, jobs }: TokenFields['rates']): { api: number | null; jobs: number | null } | undefined =>
  api === undefined && jobs === undefined ? undefined : { api: api ?? null, jobs: jobs ?? null }
