import { useQuery } from '@tanstack/react-query'
import { api, dataOf, useSession } from '../../api/client.ts'

/** The tokens of the organization; undefined until they are read, and for a session that may not. */
export function useTokens() {
  const { session, can } = useSession()
  const organization = session.organization.id
  const { data } = useQuery({
    queryKey: ['tokens', organization],
    queryFn: () => {
      const params = { path: { organization }, query: { limit: 100 } }
      return dataOf(api.GET('/api/organizations/{organization}/tokens', { params }))
    },
    enabled: can('admin:read'),
    staleTime: 60_000,
  })
  return data?.tokens
}
