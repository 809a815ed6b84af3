import { z } from 'zod'
import { TokenView } from '../../core/accounts/token-view.ts'
import { organizationFor, userFor } from '../accounts/account-client.ts'
import { openRemoteAccountClient } from '../accounts/remote-account-client.ts'
import type { Client } from '../client/client.ts'
import { changedRates, newRates, type TokenClient } from './token-client.ts'

const Me = z.object({ organization: z.object({ id: z.string() }) })
const One = z.object({ token: TokenView })
const Created = z.object({ token: TokenView, secret: z.string() })
const Rotated = Created.extend({ previous_valid_until: z.number() })
const Page = z.object({ tokens: z.array(TokenView), has_more: z.boolean(), next_cursor: z.string().nullable() })
const Deleted = z.object({ deleted: z.boolean() })

/** Unix seconds; absent and null stay so. */
const seconds = (ms: number | null | undefined) => ms && Math.ceil(ms / 1000)

/** Maximum number of pages of 100 tokens, in case a server always reports more. */
const maxPages = 1_000

/** Manages tokens of another server through its API. INFER_TOKEN needs the scopes admin:read and admin:write. */
export function openRemoteTokenClient(client: Client): TokenClient {
  async function tokensOf(organization: string | undefined): Promise<string> {
    const id =
      organization === undefined
        ? (await client.ask({ method: 'GET', path: '/api/me', answer: Me })).organization.id
        : organization.startsWith('org_')
          ? organization
          : (await organizationFor(openRemoteAccountClient(client), organization)).id
    return `/api/organizations/${encodeURIComponent(id)}/tokens`
  }

  /** Finds the user with this e-mail address; an id is taken as it is. */
  const userIdOf = async (organization: string, user: string): Promise<string> =>
    user.includes('@') ? (await userFor(openRemoteAccountClient(client), organization, user)).id : user

  return {
    async create({ organization, name, scopes, expiresAt, models, user, rates, fields }) {
      const path = await tokensOf(organization)
      const body = {
        name,
        scopes,
        expires_at: seconds(expiresAt),
        models,
        rate_limit: newRates(rates),
        ...(user === undefined ? {} : { user_id: await userIdOf(path.split('/')[3]!, user) }),
        ...fields,
      }
      return client.ask({ method: 'POST', path, body, answer: Created })
    },

    async list({ organization, status }) {
      const base = await tokensOf(organization)
      const found: TokenView[] = []
      let after: string | null = null
      for (let page = 0; page < maxPages; page++) {
        const query = new URLSearchParams({
          limit: '100',
          ...(status ? { status } : {}),
          ...(after === null ? {} : { after }),
        })
        const { tokens, has_more, next_cursor }: z.output<typeof Page> = await client.ask({
          method: 'GET',
          path: `${base}?${query.toString()}`,
          answer: Page,
        })
        found.push(...tokens)
        if (!has_more || next_cursor === null) break
        after = next_cursor
      }
      return found
    },

    async update(id, { organization, force, name, scopes, models, user, expiresAt, status, rates, fields }) {
      const base = await tokensOf(organization)
      const path = `${base}/${encodeURIComponent(id)}`
      const current = async () => (await client.ask({ method: 'GET', path, answer: One })).token
      const body = {
        name,
        scopes,
        models,
        status,
        expires_at: seconds(expiresAt),
        rate_limit: await changedRates(rates, current),
        ...(user == null ? { user_id: user } : { user_id: await userIdOf(base.split('/')[3]!, user) }),
        ...fields,
      }
      const answer = One
      return (await client.ask({ method: 'PATCH', path: `${path}${force ? '?force=true' : ''}`, body, answer })).token
    },

    async revoke(id, { organization, force }) {
      const path = `${await tokensOf(organization)}/${encodeURIComponent(id)}${force ? '?force=true' : ''}`
      await client.ask({ method: 'DELETE', path, answer: Deleted })
    },

    async rotate(id, { organization, overlapMs }) {
      const path = `${await tokensOf(organization)}/${encodeURIComponent(id)}/rotate`
      return client.ask({
        method: 'POST',
        path,
        body: { overlap_seconds: Math.round(overlapMs / 1000) },
        answer: Rotated,
      })
    },

    close: () => Promise.resolve(),
  }
}
