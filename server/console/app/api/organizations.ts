import { useQuery } from '@tanstack/react-query'
import { api, useSession } from './client.ts'
import { everyPage } from './every-page.ts'

/** All organizations that the owner of the machine may choose; deleted ones keep their usage and audit log, and stand last. */
export function useOrganizations() {
  const { ownerCan } = useSession()
  return useQuery({
    queryKey: ['organizations', 'choice'],
    queryFn: async () => {
      const pages = await everyPage(after =>
        api.GET('/api/organizations', { params: { query: { limit: 100, after } } }),
      )
      return pages
        .flatMap(({ organizations }) => organizations)
        .toSorted(
          (a, b) => Number(a.status === 'deleted') - Number(b.status === 'deleted') || a.name.localeCompare(b.name),
        )
    },
    staleTime: 60_000,
    enabled: ownerCan('admin:read'),
  })
}
