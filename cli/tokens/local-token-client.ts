import type { Accounts } from '../../core/accounts/accounts.ts'
import { tokenLimitsOf } from '../../core/accounts/token-fields.ts'
import { tokenView } from '../../core/accounts/token-view.ts'
import type { TokenChange, TokenRecord } from '../../core/store/store.ts'
import { userFor } from '../accounts/account-client.ts'
import type { Installation } from '../accounts/installation.ts'
import { openLocalAccountClient } from '../accounts/local-account-client.ts'
import { findOrganization } from '../accounts/organizations.ts'
import { changedRates, newRates, noToken, type TokenClient, type TokenUpdateOptions } from './token-client.ts'

const pageSize = 100

/** Manages tokens directly in the store of this machine, whether the server runs or not. */
export function openLocalTokenClient(installation: Installation): TokenClient {
  const { accounts, actor, close } = installation
  /** Finds the organization of the token: the named one, else any that has it. */
  async function ownerOf(id: string, organization: string | undefined): Promise<string> {
    const named =
      organization === undefined ? await accounts.organizations() : [await findOrganization(accounts, organization)]
    for (const { id: candidate } of named) if (await accounts.token(candidate, id)) return candidate
    throw noToken(id)
  }

  /** Finds the user with this id or e-mail address. */
  const userIdOf = async (organization: string, user: string): Promise<string> =>
    (await userFor(openLocalAccountClient(installation), organization, user)).id

  return {
    async create({ organization, name, scopes, expiresAt, models, user, rates, fields }) {
      const { id: organizationId } = await findOrganization(accounts, organization)
      const { metadata, ...limits } = fields
      const { token, secret } = await accounts.issue(
        {
          organizationId,
          name,
          scopes,
          expiresAt,
          models: models ?? null,
          limits: tokenLimitsOf({ ...limits, rate_limit: newRates(rates) }),
          userId: user === undefined ? null : await userIdOf(organizationId, user),
          metadata: metadata ? JSON.stringify(metadata) : null,
          createdBy: null,
        },
        actor,
      )
      return { token: tokenView(token), secret }
    },

    async list({ organization, status }) {
      const { id } = await findOrganization(accounts, organization)
      return (await allTokens(accounts, id))
        .map(token => tokenView(token))
        .filter(token => status === undefined || token.status === status)
    },

    async update(id, { organization, force, user, rates, fields, ...options }) {
      const organizationId = await ownerOf(id, organization)
      const { metadata, ...limits } = fields
      const change = {
        ...present(options),
        ...(user === undefined ? {} : { userId: user === null ? null : await userIdOf(organizationId, user) }),
        ...(metadata === undefined ? {} : { metadata: metadata && JSON.stringify(metadata) }),
        limits: tokenLimitsOf({
          ...limits,
          rate_limit: await changedRates(rates, async () => tokenView((await accounts.token(organizationId, id))!)),
        }),
      }
      const token = await accounts.update(organizationId, id, change, force, actor)
      if (!token) throw noToken(id)
      return tokenView(token)
    },

    async revoke(id, { organization, force }) {
      if (!(await accounts.revoke(await ownerOf(id, organization), id, force, actor))) throw noToken(id)
    },

    async rotate(id, { organization, overlapMs }) {
      const rotated = await accounts.rotate(await ownerOf(id, organization), id, overlapMs, actor)
      if (!rotated) throw noToken(id)
      return {
        token: tokenView(rotated.token),
        secret: rotated.secret,
        previous_valid_until: Math.floor(rotated.previousValidUntil / 1000),
      }
    },

    close,
  }
}

/** The fields that change, without absent ones. */
const present = ({
  name,
  scopes,
  models,
  expiresAt,
  status,
}: Pick<TokenUpdateOptions, 'name' | 'scopes' | 'models' | 'expiresAt' | 'status'>): TokenChange => ({
  ...(name === undefined ? {} : { name }),
  ...(scopes === undefined ? {} : { scopes }),
  ...(models === undefined ? {} : { models }),
  ...(expiresAt === undefined ? {} : { expiresAt }),
  ...(status === undefined ? {} : { status }),
})

async function allTokens(accounts: Accounts, organizationId: string): Promise<TokenRecord[]> {
  const found: TokenRecord[] = []
  for (;;) {
    const after = found.at(-1)?.id
    const page = await accounts.list(organizationId, { limit: pageSize, ...(after === undefined ? {} : { after }) })
    found.push(...page)
    if (page.length < pageSize) return found
  }
}
