import { type UseQueryResult, useQueries } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, dataOf, useSession } from './client.ts'

/** How each kind of what has a name is read, by the beginning of its ids. */
const readers: Readonly<Record<string, (organization: string, id: string) => Promise<string>>> = {
  async tok(organization, id) {
    const params = { path: { organization, id } }
    return (await dataOf(api.GET('/api/organizations/{organization}/tokens/{id}', { params }))).token.name
  },
  async user(organization, user) {
    const params = { path: { organization, user } }
    return (await dataOf(api.GET('/api/organizations/{organization}/members/{user}', { params }))).user.name
  },
}
const readerOf = (id: string) => readers[id.slice(0, id.indexOf('_'))]

/** What reads the name of a token or user again: an organization and, of one of them, its id. */
export const namesKey = (organization: string, ...id: [] | [string]) => ['names', organization, ...id]

/**
 * The names that tokens and users of an organization have now, by their ids: each is read once a minute at most, so `ids`
 * are those of one page. Those that are not read yet, were removed, or that the session may not read are left out.
 */
export function useNames(organization: string, ids: readonly (string | null)[]): ReadonlyMap<string, string> {
  const { can } = useSession()
  const asked = [...new Set(ids)].filter(id => id !== null && readerOf(id) !== undefined) as string[]
  const names = useQueries({
    queries: asked.map(id => ({
      queryKey: namesKey(organization, id),
      queryFn: async () => ({ id, name: await readerOf(id)!(organization, id) }),
      staleTime: 60_000,
      enabled: can('admin:read'),
    })),
    combine: read,
  })
  return useMemo(() => new Map(names.map(({ id, name }) => [id, name])), [names])
}

const read = (results: readonly UseQueryResult<{ id: string; name: string }>[]) =>
  results.flatMap(({ data }) => data ?? [])
