import { useQuery } from '@tanstack/react-query'
import { api, dataOf, useSession } from './client.ts'

/** Organizations that the owner of the machine may choose; deleted ones keep their usage and audit log, and stand last. */
export function useOrganizations() {
  const { ownerCan } = useSession()
  return useQuery({
    queryKey: ['organizations', 'choice'],
    queryFn: async () => {
      const { organizations } = await dataOf(api.GET('/api/organizations', { params: { query: { limit: 100 } } }))
      return organizations.toSorted(
        (a, b) => Number(a.status === 'deleted') - Number(b.status === 'deleted') || a.name.localeCompare(b.name),
      )
    },
    enabled: ownerCan('admin:read'),
  })
}
