import { useQuery } from '@tanstack/react-query'
import { api, at, dataOf, hasEnded, queryClient, type Schema, useAnswer } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'

export type Execution = Schema<'Execution'>
export type ExecutionNode = Schema<'ExecutionNode'>

/** Milliseconds between two reads that live events cause: a run of 200 nodes makes hundreds of events a second. */
const refreshMs = 400
/** Progress makes no event, so a running execution is read again after this many milliseconds. */
const progressMs = 2_000

/**
 * Follows an execution with its nodes and graph until its end. Nodes that did not change keep their objects. One that
 * `exists`, because it was just created, is read again also if it could not be read at first.
 */
export function useExecution(id: string | undefined, exists = false) {
  const key = ['executions', 'one', id]
  useLiveRefresh(['workflow_execution.'], key, {
    everyMs: refreshMs,
    concerns: ({ data }) => id !== undefined && (data.data?.execution_id === id || data.execution_id === id),
  })
  return useQuery({
    queryKey: key,
    enabled: id !== undefined,
    queryFn: async (): Promise<Execution> => {
      // The graph never changes, so it is read once.
      const dag = queryClient.getQueryData<Execution>(key)?.dag
      const call = api.GET('/api/workflow-executions/{id}', at({ id: id! }, { include: dag ? 'nodes' : 'dag' }))
      const { execution } = await dataOf(call)
      return dag ? { ...execution, dag } : execution
    },
    refetchInterval: ({ state: { data } }) => ((data ? !hasEnded(data) : exists) ? progressMs : false),
  })
}

/** Reads a node with all that lists of nodes leave out, and again when its state changes. */
export const useWholeNode = (execution: string, { node_id: node, status }: Pick<ExecutionNode, 'node_id' | 'status'>) =>
  useAnswer(['executions', 'node', execution, node, status], () =>
    api.GET('/api/workflow-executions/{id}/nodes/{node}', at({ id: execution, node })),
  )
