import type { ExecutionWrite } from '../../dag/advance.ts'
import type { ItemCountChange } from '../../dag/items.ts'
import { newId } from '../../ids.ts'
import { type JobError, waitingOf } from '../store.ts'
import type { Connection } from './database.ts'
import { cancelledError, type EndingRow, endingColumns, type openEnd } from './job-end.ts'
import type { LiveExecution } from './live-executions.ts'
import type { SharedContext } from './write-context.ts'

type Write<Kind extends ExecutionWrite['write']> = Extract<ExecutionWrite, { write: Kind }>

/** The job of an item that is to be inserted. */
export interface ItemJob {
  jobId: string
  node: number
  item: number
  direct: boolean
}

/** Writes what core/dag/items.ts has decided about the items of nodes, inside the transaction of its event. */
export function openItemFlow(
  connection: Connection,
  {
    effects,
    events,
    itemCounts,
    endJob,
  }: Pick<SharedContext, 'effects' | 'events' | 'itemCounts'> & { endJob: ReturnType<typeof openEnd> },
) {
  const setCount = connection.statement`UPDATE execution_nodes SET items = ? WHERE execution = ? AND node = ?`
  const setStarted = connection.query<{
    number: number
    attempt: number
  }>`UPDATE jobs SET started_at = ?, updated_at = ?
    WHERE execution = ? AND item IS NULL AND node = ? RETURNING number, attempt`
  const insert = connection.statement`INSERT INTO execution_items (execution, node, item, status, job_id, at)
    VALUES (?, ?, ?, 'ready', ?, ?)`
  const setEnded = connection.statement`UPDATE execution_items SET status = ?, at = ? WHERE execution = ? AND node = ?
    AND item = ?`
  const ofItem = connection.query<EndingRow & { rank: number }>`SELECT ${endingColumns}, rank FROM jobs
    WHERE execution = ? AND item = ? AND node = ? AND finished_at IS NULL`
  const ofNode = connection.query<EndingRow & { rank: number }>`SELECT ${endingColumns}, rank FROM jobs
    WHERE execution = ? AND item IS NULL AND node = ? AND finished_at IS NULL`
  const errorOfItem = connection.scalar<string | null>`SELECT error FROM jobs WHERE execution = ? AND item = ?
    AND node = ?`

  return {
    expand: ({ number }: LiveExecution, { node, count }: Write<'expand'>): void =>
      void setCount.run(count, number, node),

    /** Inserts the row of an item, and returns the job to insert for it. */
    add({ number, plan }: LiveExecution, { node, item }: Write<'create_item'>, at: number): ItemJob {
      const jobId = newId('job')
      insert.run(number, node, item, jobId, at)
      return { jobId, node, item, direct: plan.nodes[node]!.items!.direct }
    },

    /** Whether an item that has not ended is queued, waits or runs is in the row of its job. */
    set({ number }: LiveExecution, { node, item, status }: Write<'item'>, at: number): void {
      if (status !== 'ready' && status !== 'running' && status !== 'waiting')
        setEnded.run(status, at, number, node, item)
    },

    withdraw({ number }: LiveExecution, { node, item }: Write<'withdraw_item'>, at: number): void {
      const row = ofItem.get(number, item, node)
      if (!row) return
      endJob(row, { status: 'cancelled', at })
      effects.add('withdrawn', waitingOf({ ...row, class: 'workflow' }))
    },

    count: ({ number }: LiveExecution, { node, by }: Write<'count_items'>): void => itemCounts.move(number, node, by),

    /** The job of a node has started with its first item. */
    started({ number, organizationId }: LiveExecution, node: number, at: number): void {
      const row = setStarted.get(at, at, number, node)
      if (row) events.add(row.number, organizationId, 'job.started', row.attempt, at, number, node)
    },

    /** Ends the job of a node with the error of an item. */
    fail({ number }: LiveExecution, { node, item }: Write<'fail_job'>, at: number): void {
      const row = ofNode.get(number, node)
      if (!row) return
      const text = errorOfItem.get(number, item, node)
      const cause = text ? (JSON.parse(text) as JobError) : cancelledError
      endJob(row, { status: 'failed', at, error: { ...cause, message: `Item ${item}: ${cause.message}` } })
      effects.add('withdrawn', waitingOf({ ...row, class: 'workflow' }))
    },

    gather({ organizationId, id, plan }: LiveExecution, { node }: Write<'gather'>): void {
      const { jobId, nodeId } = plan.nodes[node]!
      effects.add('gathers', { organizationId, id: jobId, executionId: id, nodeId })
    },
  }
}
export type ItemFlow = ReturnType<typeof openItemFlow>

const columns = ['running', 'waiting', 'completed', 'failed', 'cost'] as const

/** Counts the items of each node by status, as `openExecutionCounts` does with nodes. */
export function openItemCounts(connection: Connection) {
  const add = connection.statement`UPDATE execution_nodes
    SET ${columns.map(name => `items_${name} = items_${name} + ?`).join(', ')} WHERE execution = ? AND node = ?`
  let counts = new Map<string, { execution: number; node: number; by: number[] }>()

  return {
    /** Adds to the counts of the items of a node; values may be negative. */
    move(execution: number, node: number, change: ItemCountChange): void {
      const key = `${execution} ${node}`
      const before = counts.get(key)?.by
      const by = columns.map((name, at) => (change[name] ?? 0) + (before?.[at] ?? 0))
      counts.set(key, { execution, node, by })
    },
    mark() {
      const snapshot = new Map(counts)
      return () => void (counts = snapshot)
    },
    write(): void {
      for (const { execution, node, by } of counts.values()) add.run(...by, execution, node)
      counts.clear()
    },
    forget(): void {
      counts.clear()
    },
  }
}
