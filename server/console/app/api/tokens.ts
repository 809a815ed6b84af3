import { useQuery } from '@tanstack/react-query'
import { api, at, useSession } from './client.ts'
import { everyPage } from './every-page.ts'
import { useSearched } from './searched.ts'

const path = '/api/organizations/{organization}/tokens'

/** The tokens of an organization to choose from, the newest first; none for a session that may not read them. */
export function useTokenChoice(organization: string) {
  const { can } = useSession()
  return useSearched(
    ['tokens', organization, 'choice'],
    page => api.GET(path, at({ organization }, page)),
    can('admin:read'),
  )
}

/** The names of all tokens of an organization by their ids, for a table that may have each of them. */
export function useAllTokenNames(organization: string, isWanted: boolean): ReadonlyMap<string, string> | undefined {
  const { can } = useSession()
  const { data } = useQuery({
    queryKey: ['tokens', organization, 'all'],
    queryFn: async () => {
      const pages = await everyPage(after => api.GET(path, at({ organization }, { limit: 100, after })))
      return new Map(pages.flatMap(({ tokens }) => tokens).map(({ id, name }) => [id, name]))
    },
    enabled: isWanted && can('admin:read'),
    staleTime: 60_000,
    structuralSharing: false,
  })
  return data
}
