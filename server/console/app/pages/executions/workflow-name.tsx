import { api, useAnswer } from '../../api/client.ts'

/** The name that a workflow has now; its id until it is known, and for one that was deleted. */
export function WorkflowName({ id }: { id: string }) {
  // The workflow itself may be large.
  const { data } = useAnswer(
    ['workflows', 'name', id],
    () => api.GET('/api/workflows/{id}/versions', { params: { path: { id }, query: { limit: 1 } } }),
    { staleTime: 60_000 },
  )
  const newest = data?.versions[0]
  return newest ? <>{newest.name}</> : <span className="font-mono text-xs break-all">{id}</span>
}
