import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, dataOf } from '../../../api/client.ts'
import { hasEnded, useLiveRefresh } from '../../../api/queries.ts'
import type { ExecutionNode } from '../editor-context.ts'

/** Milliseconds between two reads that live events cause. */
const refreshMs = 300
/** Progress makes no event, so a running execution is read again after this many milliseconds. */
const progressMs = 2_000
const none: ReadonlyMap<string, ExecutionNode> = new Map()

/** Follows an execution until its end. */
export function useRun(id: string | undefined) {
  const key = ['workflows', 'run', id]
  const query = useQuery({
    queryKey: key,
    enabled: id !== undefined,
    queryFn: async () =>
      (await dataOf(api.GET('/api/workflow-executions/{id}', { params: { path: { id: id! } } }))).execution,
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? false : progressMs),
  })
  useLiveRefresh(['workflow_execution.'], key, {
    everyMs: refreshMs,
    concerns: ({ data }) => id !== undefined && (data.data?.execution_id === id || data.execution_id === id),
  })
  const { data } = query
  const nodes = useMemo(() => (data?.nodes ? new Map(data.nodes.map(node => [node.node_id, node])) : none), [data])
  return {
    execution: id === undefined ? undefined : data,
    nodes: id === undefined ? none : nodes,
    failure: query.error,
  }
}
