import { type CountChange, type ExecutionInput, type ExecutionWrite, nextModels } from '../../dag/advance.ts'
import { advanceState } from '../../dag/advance-state.ts'
import { noUsage } from '../../usage.ts'
import { type JobError, type JobRecord, rankAt, waitingOf } from '../store.ts'
import type { ExecutionError } from '../workflows.ts'
import type { Connection } from './database.ts'
import { type ItemJob, openItemFlow } from './item-flow.ts'
import { cancelledError, type EndingRow, endingColumns, openEnd } from './job-end.ts'
import { type JobRow, jobColumns, jobOf as recordOf } from './job-reads.ts'
import { type LiveExecution, openLiveExecutions } from './live-executions.ts'
import { usageColumnNames, usageValues } from './usage-columns.ts'
import type { SharedContext } from './write-context.ts'

type Write<Kind extends ExecutionWrite['write']> = Extract<ExecutionWrite, { write: Kind }>

/**
 * Moves executions forward, inside the transaction of an event of theirs or of one of their jobs: core/dag/advance.ts
 * decides what follows, and this file writes it to the tables. The states in memory are dropped whenever a transaction
 * is rolled back.
 */
export function openExecutionFlow(
  connection: Connection,
  context: SharedContext,
  /** Called when an execution has ended, after what follows from that was written. */
  onEnded: (execution: Pick<LiveExecution, 'organizationId' | 'workflowId'>, at: number) => void = () => {},
) {
  const { boot, counts, itemCounts, events, effects, jobCounts } = context
  const setNode = connection.statement`UPDATE execution_nodes SET status = ?, at = ? WHERE execution = ? AND node = ?`
  const setSkipped = connection.statement`UPDATE execution_nodes SET status = 'skipped', skip_reason = ?, at = ?
    WHERE execution = ? AND node = ?`
  const setReady = connection.statement`UPDATE execution_nodes SET status = 'ready', job_id = ?, at = ?
    WHERE execution = ? AND node = ?`
  const setBegun = connection.statement`UPDATE executions
    SET status = 'running', started_at = ?, timeout_at = ?, updated_at = ? WHERE number = ?`
  const setClock = connection.statement`UPDATE executions SET timeout_at = ?, remaining_ms = ? WHERE number = ?`
  const setEnded = connection.statement`UPDATE executions
    SET status = ?, error = ?, queued = 0, finished_at = ?, updated_at = ?, expires_at = ? + retention_ms
    WHERE number = ?`
  const newJob = `INSERT INTO jobs (status, attempt, claims, boot, started_at, organization_id, id, token_id, task,
      model_id, class, priority, rank, max_attempts, timeout_ms, created_at, updated_at, execution, node,
      requested_model, traceparent, item, crashes, not_before)`
  const insertWaiting = connection.statement`${newJob}
    VALUES ('pending', 0, 0, NULL, NULL, ?, ?, ?, ?, ?, 'workflow', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)`
  const insertBegun = connection.query<JobRow>`${newJob}
    VALUES ('processing', 1, 1, ?, ?, ?, ?, ?, ?, ?, 'workflow', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)
    RETURNING ${jobColumns}`
  const unfinishedJob = connection.query<EndingRow & { rank: number }>`SELECT ${endingColumns}, rank FROM jobs
    WHERE organization_id = ? AND id = ? AND finished_at IS NULL`
  const jobError = connection.scalar<string | null>`SELECT error FROM jobs WHERE execution = ? AND item IS NULL
    AND node = ?`
  const live = openLiveExecutions(connection)
  // `advance` has already applied the end of these jobs to the state.
  const endJob = openEnd(connection, { ...context, flow: { load() {}, advance() {}, cancelNested } })
  const nestedOf = connection.scalar<number>`SELECT number FROM executions WHERE organization_id = ? AND parent_job = ?
    AND finished_at IS NULL`
  const awaitingJob = connection.query<{ execution: number; node: number; item: number | null }>`
    SELECT execution, node, item FROM jobs WHERE organization_id = ? AND id = ? AND awaits = 'execution'`
  const items = openItemFlow(connection, { ...context, endJob })

  function createJob(execution: LiveExecution, { node, takesSlotOf }: Write<'create_job'>, at: number): void {
    const { jobId, direct } = execution.plan.nodes[node]!
    setReady.run(jobId, at, execution.number, node)
    const before = takesSlotOf === null ? null : execution.plan.nodes[takesSlotOf]!.jobId
    insertJob(execution, { jobId, node, direct }, { at, before })
  }

  /** Inserts the job of a node, or of one of its items. `before`: the job whose slot it takes; null: it waits. */
  function insertJob(
    execution: LiveExecution,
    { jobId, node, item, direct }: Omit<ItemJob, 'item'> & { item?: number },
    { at, before }: { at: number; before: string | null },
  ): void {
    const { number, organizationId, id: executionId, tokenId, priority, traceparent } = execution
    const planned = execution.plan.nodes[node]!
    const { nodeId, task, modelId, maxAttempts, timeoutMs, requestedModel = null } = planned
    const rank = rankAt(at * 1000, priority)
    const who = [organizationId, jobId, tokenId, task, modelId, priority, rank] as const
    // Its inputs are in the definition; the resolved inputs are written when it ends.
    const terms = [maxAttempts, timeoutMs, at, at, number, node, requestedModel, traceparent, item ?? null] as const
    const parent = { executionId, nodeId, ...(item === undefined ? {} : { item }) }
    const ofNode = item === undefined ? ([number, node] as const) : []
    if (before === null) {
      const { lastInsertRowid } = insertWaiting.run(...who, ...terms)
      events.add(Number(lastInsertRowid), organizationId, 'job.created', 0, at, ...ofNode)
      jobCounts.move(organizationId, undefined, 'pending')
      const released = { id: jobId, organizationId, modelId, class: 'workflow', rank } as const
      return effects.add('released', { ...released, executionId, nodeId, direct })
    }
    const row = insertBegun.get(boot, at, ...who, ...terms)!
    events.add(row.number, organizationId, 'job.created', 0, at, ...ofNode)
    events.add(row.number, organizationId, 'job.started', 1, at, ...ofNode)
    jobCounts.move(organizationId, undefined, 'processing')
    effects.add('claimedSuccessors', { before, job: recordOf(row, undefined, null, parent) })
  }

  function withdrawJob({ organizationId, plan }: LiveExecution, { node }: Write<'withdraw_job'>, at: number): void {
    const { jobId } = plan.nodes[node]!
    const row = unfinishedJob.get(organizationId, jobId)
    if (!row) return
    endJob(row, { status: 'cancelled', at })
    effects.add('withdrawn', waitingOf({ ...row, class: 'workflow' }))
  }

  function errorOf({ number, plan }: LiveExecution, { status, failure }: Write<'end'>): ExecutionError | null {
    if (status === 'timed_out') return { code: 'timeout' }
    if (failure === null) return null
    const { nodeId, task } = plan.nodes[failure.node]!
    const cause = jobError.get(number, failure.node)
    const names = (nodes: readonly number[]) => nodes.map(node => plan.nodes[node]!.nodeId)
    return {
      code: 'node_failed',
      nodeId,
      task,
      failedNodes: names(failure.failed),
      skippedNodes: names(failure.skipped),
      cause: cause ? (JSON.parse(cause) as JobError) : cancelledError,
    }
  }

  function end(execution: LiveExecution, write: Write<'end'>, at: number): void {
    const error = errorOf(execution, write)
    setEnded.run(write.status, error && JSON.stringify(error), at, at, at, execution.number)
    live.drop(execution.number)
  }

  /** `ended`: the job whose end is the event. */
  function apply(execution: LiveExecution, write: ExecutionWrite, at: number, ended: string | null): void {
    const { number, organizationId, id } = execution
    switch (write.write) {
      case 'start':
        return void setBegun.run(at, write.timeoutAt, at, number)
      case 'clock':
        return setExecutionClock(execution, write, at)
      case 'busy':
        // It is in the row of the other execution.
        return
      case 'end':
        return end(execution, write, at)
      case 'node':
        // Whether the job of a node is pending, running or set aside is in the job's row.
        if (write.status === 'skipped') setSkipped.run(write.reason, at, number, write.node)
        else if (write.status !== 'running' && write.status !== 'waiting' && write.status !== 'ready')
          setNode.run(write.status, at, number, write.node)
        else if (write.status === 'running' && execution.state.items.has(write.node))
          items.started(execution, write.node, at)
        return
      case 'create_job':
        return createJob(execution, write, at)
      case 'withdraw_job':
        return withdrawJob(execution, write, at)
      case 'expand':
        return items.expand(execution, write)
      case 'create_item':
        return insertJob(execution, items.add(execution, write, at), { at, before: write.takesSlot ? ended : null })
      case 'item':
        return items.set(execution, write, at)
      case 'withdraw_item':
        return items.withdraw(execution, write, at)
      case 'count_items':
        return items.count(execution, write)
      case 'fail_job':
        return items.fail(execution, write, at)
      case 'gather':
        return items.gather(execution, write)
      case 'count':
        return count(execution, write.by, at)
      case 'event':
        return events.addOfExecution(number, organizationId, `workflow_execution.${write.event}`, at, write.node)
      case 'announce':
        return effects.executionChanged({
          organizationId,
          id,
          ended: write.ended,
          timeoutAt: write.timeoutAt,
          next: () => nextModels(execution.plan, execution.state),
        })
    }
  }

  /** An execution that only waits does so for the node that runs it too. */
  function setExecutionClock(execution: LiveExecution, { clock }: Write<'clock'>, at: number): void {
    const { number, organizationId, id, parentJob, plan, state } = execution
    const { timeoutAt, remainingMs } = clock
    setClock.run(timeoutAt, remainingMs, number)
    if (timeoutAt !== null)
      effects.executionChanged({ organizationId, id, ended: false, timeoutAt, next: () => nextModels(plan, state) })
    const awaiting = parentJob === null ? undefined : awaitingJob.get(organizationId, parentJob)
    if (!awaiting) return
    const { execution: outer, ...of } = awaiting
    advanceOne(outer, { type: 'nested_changed', ...of, busy: timeoutAt !== null, at })
  }

  /** What nodes use counts for the executions around theirs too, and costs their nodes. */
  function count({ number, ancestors }: LiveExecution, by: CountChange, at: number): void {
    counts.move(number, at, by)
    const { running: _, waiting: _w, completed: _c, failed: _f, skipped: _s, ...spent } = by
    if (Object.keys(spent).length === 0) return
    for (const ancestor of ancestors) {
      counts.move(ancestor.number, at, spent)
      if (spent.cost) itemCounts.move(ancestor.number, ancestor.node, { cost: spent.cost })
    }
  }

  /** Cancels the execution that a job awaits, if it has not ended. */
  function cancelNested(organizationId: string, jobId: string, at: number): void {
    const number = nestedOf.get(organizationId, jobId)
    if (number !== undefined) advanceOne(number, { type: 'cancelled', at })
  }

  function advanceOne(number: number, input: ExecutionInput, ended: string | null = null): void {
    const execution = live.get(number)
    const writes = advanceState(execution.plan, execution.state, input)
    for (const write of writes) apply(execution, write, input.at, ended)
    if (!writes.some(({ write }) => write === 'end')) return
    const { organizationId, id, parentJob } = execution
    if (parentJob !== null) effects.add('nestedEnded', { organizationId, id, jobId: parentJob })
    onEnded(execution, input.at)
  }

  return {
    /** Applies an event of the execution or of one of its jobs, whose id is that of the job which ends: writes what follows. */
    advance: advanceOne,
    /** Reads the state of the execution that a job runs for, if any: call it before the row of the job changes. */
    load(number: number | null): void {
      if (number !== null) live.get(number)
    },
    cancelNested,
    /** The executions around the one that a node would run, its own first, by number. */
    around: (number: number): number[] => [number, ...live.get(number).ancestors.map(one => one.number)],

    /** The execution id and node id that a job runs for, and the item if it runs for one. */
    parentOf(number: number, node: number, item: number | null): NonNullable<JobRecord['parent']> {
      const { id, plan } = live.get(number)
      return { executionId: id, nodeId: plan.nodes[node]!.nodeId, ...(item === null ? {} : { item }) }
    },

    /** Call it when a transaction was rolled back: the states in memory may be wrong. */
    forget: live.clear,
  }
}
/** The change of a job of an execution as an event, without its time: that of a node, or that of one of its items. */
export const changeOf = <Change extends 'started' | 'requeued' | 'set_aside'>(
  { node, item }: Pick<JobRow, 'node' | 'item'>,
  change: Change,
) =>
  item === null
    ? ({ type: `job_${change}`, node: node! } as const)
    : ({ type: `item_${change}`, node: node!, item } as const)

export type ExecutionFlow = ReturnType<typeof openExecutionFlow>

const columns = ['running', 'waiting', 'completed', 'failed', 'skipped', 'cost', ...usageColumnNames]

/** What is added to the columns, in their order. */
const addends = ({
  running = 0,
  waiting = 0,
  completed = 0,
  failed = 0,
  skipped = 0,
  cost = 0,
  ...usage
}: CountChange): number[] => [
  running,
  waiting,
  completed,
  failed,
  skipped,
  cost,
  ...usageValues({ ...noUsage, ...usage }).map(value => value ?? 0),
]

/**
 * Counts the nodes of each execution by status, and their usage. Many nodes of one execution may change in one commit:
 * the changes of a transaction are added up here and written once before its commit.
 */
export function openExecutionCounts(connection: Connection) {
  const add = connection.statement`UPDATE executions
    SET ${columns.map(name => `${name} = ${name} + ?`).join(', ')}, updated_at = ? WHERE number = ?`
  let counts = new Map<number, { by: number[]; at: number }>()

  return {
    /** Adds to the counts of an execution; values may be negative. */
    move(execution: number, at: number, change: CountChange): void {
      const before = counts.get(execution)?.by
      const by = addends(change).map((value, which) => value + (before?.[which] ?? 0))
      counts.set(execution, { by, at })
    },
    mark() {
      const snapshot = new Map(counts)
      return () => void (counts = snapshot)
    },
    write(): void {
      for (const [execution, { by, at }] of counts) add.run(...by, at, execution)
      counts.clear()
    },
    forget(): void {
      counts.clear()
    },
  }
}
