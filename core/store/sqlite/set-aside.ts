import type { Statements } from '../method-table.ts'
import { deferredUntil, type JobClaim, waitingOf } from '../store.ts'
import type { ExecutionStore } from '../workflows.ts'
import type { Connection } from './database.ts'
import { changeOf } from './execution-flow.ts'
import { type EndingRow, endingColumns } from './job-end.ts'
import type { JobRow } from './job-reads.ts'
import { openListWaits } from './list-waits.ts'
import { openResultRows, type WrittenOutcome } from './results.ts'
import { openWaitRows } from './waits.ts'
import type { WriteContext } from './write-context.ts'

/** A job that is set aside, as its end needs it. */
type SetAsideRow = EndingRow & Pick<JobRow, 'rank'>
const columns = `${endingColumns}, rank`

/**
 * Returns the function that ends a job that is set aside, in the caller's transaction: its result, its end, and what follows
 * in its execution.
 */
function openSetAsideEnd(
  connection: Connection,
  { effects, endJob }: Pick<WriteContext, 'effects' | 'endJob'>,
): (row: SetAsideRow, outcome: WrittenOutcome) => void {
  const insertResult = openResultRows(connection)

  return (row, outcome) => {
    const { at } = outcome
    if (outcome.status === 'completed') insertResult(row.number, outcome.result)
    endJob(
      row,
      outcome.status === 'completed' ? { status: 'completed', at } : { status: 'failed', at, error: outcome.error },
    )
    // Tells those who wait for the end of the job.
    effects.add('withdrawn', waitingOf({ ...row, class: 'workflow' }))
  }
}

/** How a job is set aside: as `executions.setAside` says. */
type SetAside = Parameters<ExecutionStore['setAside']>[2] & {
  /** How many items it awaits. */
  count?: number
}

/** Returns the function that sets the job of a node aside, in the caller's transaction. Undefined: it cannot be set aside. */
export function openSetAside(
  connection: Connection,
  { effects, events, flow, jobCounts }: Pick<WriteContext, 'effects' | 'events' | 'flow' | 'jobCounts'>,
) {
  const ofNode = `organization_id = ? AND id = ? AND node IS NOT NULL AND awaits IS NULL`
  const pending = connection.query<SetAsideRow>`SELECT ${columns} FROM jobs WHERE ${ofNode} AND status = 'pending'`
  const claimed = connection.query<SetAsideRow>`UPDATE jobs
    SET status = 'pending', boot = NULL, attempt = attempt - 1, started_at = NULL
    WHERE ${ofNode} AND status = 'processing' AND boot = ? AND claims = ? RETURNING ${columns}`
  const setAside = connection.statement`UPDATE jobs SET awaits = ?, not_before = ?, updated_at = ? WHERE number = ?`
  const keepInputs = connection.statement`INSERT OR REPLACE INTO job_inputs (number, inputs) VALUES (?, ?)`
  const addWait = openWaitRows(connection)
  const lists = openListWaits(connection)
  const untoldList = connection.query<{ number: number; attempt: number }>`SELECT number, attempt FROM jobs
    WHERE execution = ? AND item IS NULL AND node = ? AND awaits = 'items' AND NOT EXISTS (SELECT 1 FROM events
      WHERE events.number = jobs.number AND type = 'job.waiting' AND events.execution IS NOT NULL)`
  const keptItems = connection.query<{ item: number }>`SELECT item FROM execution_items WHERE execution = ? AND node = ?
    ORDER BY item`

  /** Takes the job from its run: the attempt is not counted. */
  function takeFromRun(
    organizationId: string,
    id: string,
    { boot, claims }: Pick<JobClaim, 'boot' | 'claims'>,
    at: number,
  ) {
    const row = claimed.get(organizationId, id, boot, claims)
    if (!row) return undefined
    jobCounts.move(organizationId, 'processing', 'pending')
    flow.advance(row.execution!, { ...changeOf(row, 'requeued'), at })
    effects.add('setAside', waitingOf({ ...row, class: 'workflow' }))
    return row
  }

  /** Adds the event of a list all of whose items wait, once: ten thousand items would begin to wait as often. */
  function tellOfList({ organizationId, execution, node }: SetAsideRow, at: number): void {
    events.insert()
    const list = untoldList.get(execution, node)
    if (list && lists.awaitedByItems(execution!, node!) !== null)
      events.add(list.number, organizationId, 'job.waiting', list.attempt, at, execution, node)
  }

  return (
    organizationId: string,
    id: string,
    { awaits, at, inputs, claim, wait, count }: SetAside,
  ): SetAsideRow | undefined => {
    const row = claim ? takeFromRun(organizationId, id, claim, at) : pending.get(organizationId, id)
    if (!row) return undefined
    flow.load(row.execution)
    setAside.run(awaits, deferredUntil, at, row.number)
    if (wait) addWait({ number: row.number, organizationId, awaits, at }, wait)
    if (inputs !== undefined) keepInputs.run(row.number, inputs)
    const { number, attempt, execution, node, item } = row
    if (count !== undefined) {
      if (claim) events.add(number, organizationId, 'job.waiting', attempt, at)
      const kept = keptItems.all(execution, node).map(one => one.item)
      flow.advance(execution!, { type: 'list_known', node: node!, count, kept, at })
      return row
    }
    const isTold = item === null || awaits === 'approval' || awaits === 'event'
    events.add(number, organizationId, 'job.waiting', attempt, at, ...(isTold ? [execution, node] : []))
    flow.advance(execution!, { ...changeOf(row, 'set_aside'), busy: awaits === 'execution', at })
    if (!isTold) tellOfList(row, at)
    return row
  }
}

/**
 * The writer's commands for jobs of nodes that something else than a run ends. A job that is set aside is deferred for ever,
 * so that no reader of the queue finds it, and its column `awaits` says what ends it.
 */
export function setAsideCommands(connection: Connection, context: WriteContext) {
  const one = connection.query<SetAsideRow>`SELECT ${columns} FROM jobs WHERE organization_id = ? AND id = ?
    AND awaits = ?`
  const setAside = openSetAside(connection, context)
  const end = openSetAsideEnd(connection, context)

  return {
    /** False: the job is not set aside for this. */
    resolveJob(
      { organizationId, id, awaits }: Pick<JobRow, 'organizationId' | 'id' | 'awaits'>,
      outcome: WrittenOutcome,
    ): boolean {
      const row = one.get(organizationId, id, awaits)
      if (!row) return false
      end(row, outcome)
      return true
    },

    ...({
      'executions.setAside': (organizationId, id, how) => setAside(organizationId, id, how) !== undefined,

      'executions.expand': (organizationId, id, how) =>
        setAside(organizationId, id, { ...how, awaits: 'items' }) !== undefined,
    } satisfies Statements),
  }
}
