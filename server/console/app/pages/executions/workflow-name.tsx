import { api, at, useAnswer } from '../../api/client.ts'

/** The name that a workflow has now; its id until it is known, and for one that was deleted. */
export function WorkflowName({ id }: { id: string }) {
  const { data } = useAnswer(['workflows', 'name', id], () => api.GET('/api/workflows/{id}', at({ id })), {
    staleTime: 60_000,
  })
  return data ? <>{data.workflow.name}</> : <span className="font-mono text-xs break-all">{id}</span>
}
