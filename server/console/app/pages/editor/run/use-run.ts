import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo, useRef } from 'react'
import { api, dataOf } from '../../../api/client.ts'
import { useLiveEvents } from '../../../api/live.ts'
import type { Execution, ExecutionNode } from '../editor-context.ts'

/** Milliseconds between two reads that live events cause. */
const refreshMs = 300
/** Progress makes no event, so a running execution is read again after this many milliseconds. */
const progressMs = 2_000
const none: ReadonlyMap<string, ExecutionNode> = new Map()

export const hasEnded = ({ status }: Pick<Execution, 'status'>): boolean => status !== 'pending' && status !== 'running'

/** Follows an execution until its end. */
export function useRun(id: string | undefined) {
  const queries = useQueryClient()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const key = ['workflows', 'run', id]
  const query = useQuery({
    queryKey: key,
    enabled: id !== undefined,
    queryFn: async () =>
      (await dataOf(api.GET('/api/workflow-executions/{id}', { params: { path: { id: id! } } }))).execution,
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? false : progressMs),
  })
  useLiveEvents(['workflow_execution.'], events => {
    if (id === undefined || !events.some(({ data }) => data.data?.execution_id === id || data.execution_id === id))
      return
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      void queries.invalidateQueries({ queryKey: key })
    }, refreshMs)
  })
  const { data } = query
  const nodes = useMemo(() => (data?.nodes ? new Map(data.nodes.map(node => [node.node_id, node])) : none), [data])
  return {
    execution: id === undefined ? undefined : data,
    nodes: id === undefined ? none : nodes,
    failure: query.error,
  }
}
