import { queryOptions } from '@tanstack/react-query'
import { api, dataOf } from '../../api/client.ts'

/** Organizations that the owner of the machine may choose; deleted ones keep their usage, and stand last. */
export const organizationsQuery = queryOptions({
  queryKey: ['usage', 'organizations'],
  queryFn: async () => {
    const { organizations } = await dataOf(api.GET('/api/organizations', { params: { query: { limit: 100 } } }))
    return organizations.toSorted(
      (a, b) => Number(a.status === 'deleted') - Number(b.status === 'deleted') || a.name.localeCompare(b.name),
    )
  },
})
