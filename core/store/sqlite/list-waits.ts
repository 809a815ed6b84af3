import type { Awaitable } from '../../dag/execution-state.ts'
import { noModelId } from '../../schemas/task-table.ts'
import type { Connection } from './database.ts'

/** A node as its row has it; `items` is null unless its list is known. */
interface ListRow {
  modelId: string
  status: string
  items: number | null
  itemsRunning: number
  itemsWaiting: number
}

/** The items of a list whose jobs have not ended. */
interface OpenItems {
  jobs: number
  /** How many of these jobs are set aside. */
  waiting: number
  awaits: Awaitable | null
}

/**
 * Reads of lists whose items wait. A list waits while it has items whose jobs have not ended and all of those are set aside;
 * it awaits what they await. That is read from the rows of the items and stored nowhere: `items_waiting` lacks those that await
 * an execution which does not wait itself. Ten thousand rows take a millisecond, so they are read only of lists whose items may
 * wait, which no work of a model does.
 */
export function openListWaits(connection: Connection) {
  const openItems = connection.query<OpenItems>`SELECT count(*) AS jobs, count(awaits) AS waiting, min(awaits) AS awaits
    FROM execution_items AS i CROSS JOIN jobs
    ON jobs.execution = i.execution AND jobs.item = i.item AND jobs.node = i.node
    WHERE i.execution = ? AND i.node = ? AND i.status = 'ready'`
  const mayWait = connection.query<{ node: number }>`SELECT node FROM execution_nodes WHERE execution = ?
    AND status = 'ready' AND items > 0 AND items_running = 0 AND (items_waiting > 0 OR model_id = '${noModelId}')`

  const awaitedBy = ({ jobs, waiting, awaits }: OpenItems): Awaitable | null => (jobs === waiting ? awaits : null)

  return {
    /** How many items of a node wait, and what the node awaits if all of them do. */
    ofNode(execution: number, node: number, row: ListRow): { waiting: number; awaits: Awaitable | null } {
      const { modelId, status, items, itemsRunning, itemsWaiting: waiting } = row
      const isLive = status === 'ready' && items !== null
      if (!isLive || (modelId !== noModelId && (waiting === 0 || itemsRunning > 0))) return { waiting, awaits: null }
      const open = openItems.get(execution, node)!
      return { waiting: open.waiting, awaits: awaitedBy(open) }
    },

    /** What the items of a node await, if all of them that have a job wait; null otherwise. */
    awaitedByItems: (execution: number, node: number): Awaitable | null => awaitedBy(openItems.get(execution, node)!),

    /** How many lists of an execution wait. */
    count: (execution: number): number =>
      mayWait.all(execution).filter(({ node }) => awaitedBy(openItems.get(execution, node)!) !== null).length,
  }
}
export type ListWaits = ReturnType<typeof openListWaits>
