import { Failure } from '../../failure.ts'
import { jobErrorOf, type RowKey, waitingOf } from '../store.ts'
import type { ExecutionError } from '../workflows.ts'
import { type Connection, meaningOf } from './database.ts'
import type { TransactionMemory } from './group.ts'
import { type EndingRow, endingColumns, type openEnd } from './job-end.ts'
import type { SharedContext } from './write-context.ts'

/** The line in the log about a row that would otherwise have held up others without end. */
export const givenUp = 'Something stored could not be processed and was given up'

const unusable = (what: string) =>
  new Failure(
    'internal_error',
    `${what} could not be processed, because something that is stored of it is unusable. The log of infer has the cause. Submit it again.`,
  )

/**
 * Processes rows in the caller's transaction so that one at fault holds up no others. A row for which `work` throws is
 * rolled back alone and given to `giveUp`, which must take it out of the loop for good; that is reported once, with
 * its id, in `effects`. If `giveUp` throws too, nothing of the transaction is kept.
 */
export type EachRow = <Row extends { id: string }>(
  rows: readonly Row[],
  work: (row: Row) => void,
  giveUp: (row: Row) => void,
) => void

/** Ends stored work that cannot be processed as usual, inside the caller's transaction. */
export function openGiveUp(
  connection: Connection,
  { events, effects, jobCounts }: SharedContext,
  ends: {
    memory: TransactionMemory
    endJob: ReturnType<typeof openEnd>
    endAlone: ReturnType<typeof openEnd>
    /** Called when an execution was given up. */
    executionEnded: (execution: { organizationId: string; workflowId: string | null }, at: number) => void
  },
) {
  const savepoint = connection.statement`SAVEPOINT given_up`
  const keep = connection.statement`RELEASE given_up`
  const undo = connection.statement`ROLLBACK TO given_up`
  const withoutWebhook = connection.statement`UPDATE jobs SET webhook = NULL WHERE number = ?`
  const executionWithoutWebhook = connection.statement`UPDATE executions SET webhook = NULL WHERE number = ?`
  const endBare = connection.statement`UPDATE jobs SET status = 'failed', boot = NULL, held = 0, awaits = NULL, error = ?,
    updated_at = ?, finished_at = ?, expires_at = ? + retention_ms WHERE number = ?`
  const ofExecution = connection.query<EndingRow & { rank: number }>`SELECT ${endingColumns}, rank FROM jobs
    WHERE execution = ? AND finished_at IS NULL`
  const endNodes = connection.statement`UPDATE execution_nodes SET status = 'cancelled', at = ? WHERE execution = ?
    AND status IN ('pending', 'ready')`
  const endItems = connection.statement`UPDATE execution_items SET status = 'cancelled', at = ? WHERE execution = ?
    AND status = 'ready'`
  const noItemRuns = connection.statement`UPDATE execution_nodes SET items_running = 0, items_waiting = 0 WHERE execution = ?`
  const endExecution = connection.query<
    RowKey & { workflowId: string | null; parentJob: string | null }
  >`UPDATE executions
    SET status = 'failed', queued = 0, running = 0, waiting = 0, remaining_ms = NULL, error = ?, finished_at = ?, updated_at = ?,
    expires_at = ? + retention_ms WHERE number = ? AND finished_at IS NULL
    RETURNING organization_id AS organizationId, id, workflow_id AS workflowId, parent_job AS parentJob`

  /** Does all of it or nothing. Returns what it threw, unless that concerns the whole database. */
  function thrownBy(work: () => void): unknown {
    savepoint.run()
    const revert = ends.memory.mark()
    try {
      work()
    } catch (thrown) {
      if (meaningOf(thrown) !== 'command' || !connection.inTransaction) throw thrown
      undo.run()
      revert()
      keep.run()
      return thrown
    }
    keep.run()
    return undefined
  }

  const eachRow: EachRow = (rows, work, giveUp) => {
    const all = () => {
      for (const row of rows) work(row)
    }
    if (rows.length === 0 || thrownBy(all) === undefined) return
    for (const row of rows) {
      const thrown = thrownBy(() => work(row))
      if (thrown === undefined) continue
      giveUp(row)
      effects.add('givenUp', { id: row.id, cause: thrown instanceof Error ? (thrown.stack ?? thrown.message) : '' })
    }
  }

  /** Fails an execution whose plan or state cannot be read, and cancels its jobs. */
  function giveUpExecution(number: number, at: number): void {
    executionWithoutWebhook.run(number)
    for (const row of ofExecution.all(number)) {
      ends.endAlone(row, { status: 'cancelled', at })
      effects.add('withdrawn', waitingOf({ ...row, class: 'workflow' }))
    }
    endNodes.run(at, number)
    endItems.run(at, number)
    noItemRuns.run(number)
    const cause = jobErrorOf(unusable('The execution'), 0)
    const none = { nodeId: null, task: null, failedNodes: [], skippedNodes: [] }
    const error = JSON.stringify({ code: 'node_failed', ...none, cause } satisfies ExecutionError)
    const ended = endExecution.get(error, at, at, at, number)
    if (!ended) return
    events.addOfExecution(number, ended.organizationId, 'workflow_execution.failed', at)
    const { organizationId, id, parentJob } = ended
    if (parentJob !== null) effects.add('nestedEnded', { organizationId, id, jobId: parentJob })
    effects.executionChanged({ organizationId, id, ended: true, next: () => [] })
    ends.executionEnded(ended, at)
  }

  /** Fails a job: as usual if that is possible, otherwise without its webhook and its execution. */
  function giveUpJob(row: EndingRow, at: number): void {
    const end = { status: 'failed', at, error: jobErrorOf(unusable(`The job ${row.id}`), row.attempt) } as const
    withoutWebhook.run(row.number)
    if (thrownBy(() => ends.endJob(row, end)) === undefined) return
    if (row.execution !== null) executionWithoutWebhook.run(row.execution)
    if (thrownBy(() => ends.endAlone(row, end)) !== undefined) {
      endBare.run(JSON.stringify(end.error), at, at, at, row.number)
      jobCounts.move(row.organizationId, row.status, 'failed')
    }
    if (row.execution !== null) giveUpExecution(row.execution, at)
  }

  return { eachRow, giveUpJob, giveUpExecution }
}
