import { useQuery } from '@tanstack/react-query'
import { api, dataOf } from '../../api/client.ts'

/** The name that a workflow has now; its id until it is known, and for one that was deleted. */
export function WorkflowName({ id }: { id: string }) {
  const { data } = useQuery({
    queryKey: ['workflows', 'names'],
    queryFn: async () => {
      const { workflows } = await dataOf(api.GET('/api/workflows', { params: { query: { limit: 100 } } }))
      return new Map(workflows.map(workflow => [workflow.id, workflow.name]))
    },
    staleTime: 60_000,
    structuralSharing: false,
  })
  const name = data?.get(id)
  return name === undefined ? <span className="font-mono text-xs break-all">{id}</span> : <>{name}</>
}
