import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { api, type Schema } from '../../api/client.ts'
import { everyPage } from '../../api/every-page.ts'
import type { Execution } from './use-execution.ts'

export type Approval = Schema<'Approval'>

const none: readonly Approval[] = []

/**
 * The questions to people that are open in an execution. They are read when a node or an item begins to wait. `areRead`: those
 * were read with which the page has begun.
 */
export function useApprovals(execution: Pick<Execution, 'id' | 'nodes'> | undefined) {
  const [areRead, setRead] = useState(false)
  const waiting = (execution?.nodes ?? [])
    .filter(({ status, awaits, items }) => (status === 'waiting' ? awaits === 'approval' : (items?.waiting ?? 0) > 0))
    // Of a list the next question comes when one is answered.
    .map(({ node_id, items }) => `${node_id} ${items ? items.completed + items.failed + items.waiting : ''}`)
  const id = execution?.id
  const { data, isLoading } = useQuery({
    queryKey: ['executions', 'approvals', id, waiting],
    enabled: id !== undefined && waiting.length > 0,
    queryFn: async () => {
      const pages = await everyPage(after =>
        api.GET('/api/approvals', { params: { query: { execution_id: id!, limit: 100, after } } }),
      )
      return pages.flatMap(({ approvals }) => approvals)
    },
  })
  if (!areRead && execution && !isLoading) setRead(true)
  return { approvals: waiting.length === 0 ? none : (data ?? none), areRead }
}

/** The oldest question of each node. */
export const useByNode = (approvals: readonly Approval[]): ReadonlyMap<string, Approval> =>
  useMemo(() => new Map(approvals.map(approval => [approval.node_id, approval])), [approvals])
