import { useQuery, useQueryClient } from '@tanstack/react-query'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { hasEnded, useLiveRefresh } from '../../api/queries.ts'

export type Execution = Schema<'Execution'>
export type ExecutionNode = Schema<'ExecutionNode'>

/** Milliseconds between two reads that live events cause: a run of 200 nodes makes hundreds of events a second. */
const refreshMs = 400
/** Progress makes no event, so a running execution is read again after this many milliseconds. */
const progressMs = 2_000

/** Follows an execution with its nodes and graph until its end. Nodes that did not change keep their objects. */
export function useExecution(id: string) {
  const queries = useQueryClient()
  const key = ['executions', 'one', id]
  const query = useQuery({
    queryKey: key,
    queryFn: async (): Promise<Execution> => {
      // The graph never changes, so it is read once.
      const dag = queries.getQueryData<Execution>(key)?.dag
      const params = { path: { id }, query: { include: dag ? ('nodes' as const) : ('dag' as const) } }
      const { execution } = await dataOf(api.GET('/api/workflow-executions/{id}', { params }))
      return dag ? { ...execution, dag } : execution
    },
    refetchInterval: ({ state: { data } }) => (data && !hasEnded(data) ? progressMs : false),
  })
  useLiveRefresh(['workflow_execution.'], key, {
    everyMs: refreshMs,
    concerns: ({ data }) => data.data?.execution_id === id,
  })
  return query
}
