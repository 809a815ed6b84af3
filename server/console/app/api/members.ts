import { api, useAnswer, useSession } from './client.ts'

/** The newest users of an organization; undefined until they are read, and for a session that may not. */
export function useMembers(organization: string) {
  const { can } = useSession()
  const params = { path: { organization }, query: { limit: 100 } }
  const { data } = useAnswer(
    ['members', organization],
    () => api.GET('/api/organizations/{organization}/members', { params }),
    { enabled: can('admin:read'), staleTime: 60_000 },
  )
  return data?.users
}
