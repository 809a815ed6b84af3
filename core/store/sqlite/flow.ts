import type { ExecutionStatus, NodeStatus } from '../../dag/advance.ts'
import { advance, type Consequences, isOver, type Plan, type Standing } from '../../dag/advance.ts'
import { rankAt } from '../rank.ts'
import type { Usage } from '../store.ts'
import type { ExecutionError, NewExecutionNode } from '../workflows.ts'
import type { Connection } from './database.ts'
import { openFailureOf } from './execution-failure.ts'
import { type EndingRow, endingColumns, openEnd, type Writing } from './job-end.ts'
import { type JobRow, jobColumns, jobOf as recordOf } from './job-reads.ts'
import { openKept } from './kept.ts'

/** A node as it was planned; its number is its place in the plan. */
export type PlannedNode = Omit<NewExecutionNode, 'reuses'>

interface Live {
  number: number
  organizationId: string
  id: string
  tokenId: string
  priority: number
  status: ExecutionStatus
  timeoutMs: number
  plan: Plan & { nodes: readonly PlannedNode[] }
  standing: Standing
}

interface ExecutionRow {
  number: number
  organization_id: string
  id: string
  token_id: string
  priority: number
  status: ExecutionStatus
  timeout_ms: number
  on_failure: Plan['onFailure']
  plan: string
}

const going: ReadonlySet<ExecutionStatus> = new Set(['pending', 'running'])

/** How a job of an execution has ended. */
interface JobEnd {
  status: 'completed' | 'failed' | 'cancelled'
  /** Whether it was running. */
  ran: boolean
  usage: Usage
  cost: number
}

/**
 * Moves executions on, inside the transaction in which a job of theirs begins or ends: what follows is decided by
 * core/dag/advance.ts, and written down here. What it keeps in memory is a copy of the rows, and is dropped
 * whenever a transaction is undone.
 */
export function openFlow(connection: Connection, writing: Omit<Writing, 'flow'>) {
  const { boot, counts, events, moves, tally } = writing
  const execution = connection.prepare<[number], ExecutionRow>(
    `SELECT number, organization_id, id, token_id, priority, status, timeout_ms, on_failure, plan FROM executions
     JOIN execution_plans ON execution = number WHERE number = ?`,
  )
  const statuses = connection.prepare<[number], { node: number; status: NodeStatus; job: string | null }>(
    `SELECT execution_nodes.node, execution_nodes.status, jobs.status AS job FROM execution_nodes
     LEFT JOIN jobs ON jobs.execution = execution_nodes.execution AND jobs.node = execution_nodes.node
     WHERE execution_nodes.execution = ? ORDER BY execution_nodes.node`,
  )
  const setNode = connection.prepare('UPDATE execution_nodes SET status = ?, at = ? WHERE execution = ? AND node = ?')
  const setReady = connection.prepare(
    `UPDATE execution_nodes SET status = 'ready', job_id = ?, at = ? WHERE execution = ? AND node = ?`,
  )
  const setBegun = connection.prepare(
    `UPDATE executions SET status = 'running', started_at = ?, timeout_at = ?, updated_at = ? WHERE number = ?`,
  )
  const setEnded = connection.prepare(
    `UPDATE executions SET status = ?, error = ?, finished_at = ?, updated_at = ?, expires_at = ? + retention_ms
     WHERE number = ?`,
  )
  const newJob = `INSERT INTO jobs (status, attempt, claims, boot, started_at, organization_id, id, token_id, task,
      model_id, class, priority, rank, max_attempts, timeout_ms, created_at, updated_at, execution, node, crashes, not_before)`
  const insertWaiting = connection.prepare(
    `${newJob} VALUES ('pending', 0, 0, NULL, NULL, ?, ?, ?, ?, ?, 'workflow', ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)`,
  )
  const insertBegun = connection.prepare<unknown[], JobRow>(
    `${newJob} VALUES ('processing', 1, 1, ?, ?, ?, ?, ?, ?, ?, 'workflow', ?, ?, ?, ?, ?, ?, ?, ?, 0, 0) RETURNING ${jobColumns}`,
  )
  const jobOf = connection.prepare<[string, string], EndingRow & { rank: number }>(
    `SELECT ${endingColumns}, rank FROM jobs WHERE organization_id = ? AND id = ? AND finished_at IS NULL`,
  )
  const kept = openKept<Live>(({ plan }) => plan.nodes.length)
  let endJob: ReturnType<typeof openEnd> | undefined

  function load(number: number): Live {
    const known = kept.get(number)
    if (known) return known
    const row = execution.get(number)!
    const nodes = JSON.parse(row.plan) as PlannedNode[]
    const rows = statuses.all(number)
    const status = rows.map(({ status, job }) => (status === 'ready' && job === 'processing' ? 'running' : status))
    const missing = nodes.map(({ predecessors }) => predecessors)
    for (const [at, { successors, onError }] of nodes.entries())
      if (status[at] === 'completed' || (status[at] === 'failed' && onError === 'continue'))
        for (const after of successors) missing[after]!--
    const standing = { status, missing, open: status.filter(one => !isOver(one)).length }
    return remember(row, { nodes, onFailure: row.on_failure }, standing)
  }

  function remember(row: ExecutionRow, plan: Live['plan'], standing: Standing): Live {
    const live: Live = {
      number: row.number,
      organizationId: row.organization_id,
      id: row.id,
      tokenId: row.token_id,
      priority: row.priority,
      status: row.status,
      timeoutMs: row.timeout_ms,
      plan,
      standing,
    }
    kept.keep(live.number, live)
    return live
  }

  function changed(live: Live, timeoutAt?: number): void {
    moves.change({ organizationId: live.organizationId, id: live.id, ended: !going.has(live.status), timeoutAt })
  }

  /** Its first node leaves pending: its time counts from now on. The answer is when that is over, once. */
  function start(live: Live, at: number): number | undefined {
    if (live.status !== 'pending') return undefined
    live.status = 'running'
    const timeoutAt = at + live.timeoutMs
    setBegun.run(at, timeoutAt, at, live.number)
    events.addOfExecution(live.number, live.organizationId, 'workflow_execution.started', at)
    return timeoutAt
  }

  function release(live: Live, node: number, at: number): void {
    const { jobId, nodeId, task, modelId, maxAttempts, timeoutMs, direct } = live.plan.nodes[node]!
    const { organizationId, id: executionId } = live
    const rank = rankAt(at * 1000, live.priority)
    const who = [organizationId, jobId, live.tokenId, task, modelId, live.priority, rank] as const
    const facts = [...who, maxAttempts, timeoutMs, at, at, live.number, node] as const
    // Its inputs are in the definition; what they come to is written when it ends.
    setReady.run(jobId, at, live.number, node)
    const before = direct ? moves.takeSlot(modelId) : undefined
    if (before === undefined) {
      const { lastInsertRowid } = insertWaiting.run(...facts)
      events.add(lastInsertRowid, organizationId, 'job.created', 0, at, live.number, node)
      tally.move(undefined, 'pending')
      moves.release({ id: jobId, organizationId, modelId, class: 'workflow', rank, executionId, nodeId, direct })
      return
    }
    // It has the slot of the one that has ended, and so never waits.
    const row = insertBegun.get(boot, at, ...facts)!
    events.add(row.number, organizationId, 'job.created', 0, at, live.number, node)
    events.add(row.number, organizationId, 'job.started', 1, at, live.number, node)
    tally.move(undefined, 'processing')
    live.standing.status[node] = 'running'
    counts.move(live.number, at, { running: 1 })
    moves.hand({ before, job: recordOf(row, undefined, null, { executionId, nodeId }) })
  }

  /** Ends the job of a node that is not to run any more. */
  function withdraw(live: Live, node: number, at: number): void {
    const { jobId } = live.plan.nodes[node]!
    const row = jobOf.get(live.organizationId, jobId)
    if (!row) return // It finds its node over already, and so changes nothing else.
    ;(endJob ??= openEnd(connection, { ...writing, flow }))(row, { status: 'cancelled', at })
    moves.withdraw({
      id: jobId,
      organizationId: live.organizationId,
      modelId: row.model_id,
      class: 'workflow',
      rank: row.rank,
    })
  }

  function heed(
    live: Live,
    { release: ready, skip, ended }: Consequences,
    at: number,
    error: () => ExecutionError,
  ): void {
    for (const node of ready) release(live, node, at)
    if (skip.length > 0) counts.move(live.number, at, { skipped: skip.length })
    for (const node of skip) {
      setNode.run('skipped', at, live.number, node)
      events.addOfExecution(live.number, live.organizationId, 'workflow_execution.node.skipped', at, node)
      withdraw(live, node, at)
    }
    if (ended) end(live, ended, at, ended === 'failed' ? error() : null)
    changed(live)
  }

  function end(live: Live, status: ExecutionStatus, at: number, error: ExecutionError | null): void {
    live.status = status
    setEnded.run(status, error && JSON.stringify(error), at, at, at, live.number)
    events.addOfExecution(live.number, live.organizationId, `workflow_execution.${status as 'completed'}`, at)
    kept.drop(live.number)
  }

  const failureOf = openFailureOf(connection)
  const nodeFailed =
    ({ number, plan, standing }: Live) =>
    () =>
      failureOf(number, plan.nodes, standing.status)

  const flow = {
    /** An execution was created: its first nodes get their jobs. `taken` have their results already. */
    begun(number: number, { release: ready, ended, ...standing }: Standing & Consequences, at: number): void {
      const row = execution.get(number)!
      const { status, missing, open } = standing
      const plan = { nodes: JSON.parse(row.plan) as PlannedNode[], onFailure: row.on_failure }
      const live = remember(row, plan, { status, missing, open })
      events.addOfExecution(number, row.organization_id, 'workflow_execution.created', at)
      // Every result was there already.
      if (ended) start(live, at)
      heed(live, { release: ready, skip: [], ended }, at, nodeFailed(live))
    },

    /** A job of it begins to run. Says for what. */
    claimed(number: number, node: number, at: number): { executionId: string; nodeId: string } {
      const live = load(number)
      live.standing.status[node] = 'running'
      counts.move(number, at, { running: 1 })
      changed(live, start(live, at))
      return { executionId: live.id, nodeId: live.plan.nodes[node]!.nodeId }
    },

    /** A job of it waits again. */
    givenBack(number: number, node: number, at: number): void {
      const live = load(number)
      counts.move(number, at, { running: -1 })
      if (live.standing.status[node] === 'running') live.standing.status[node] = 'ready'
      changed(live)
    },

    /** A job of it has ended. */
    jobEnded(number: number, node: number, { status, ran, ...spent }: JobEnd, at: number): void {
      const live = load(number)
      if (isOver(live.standing.status[node]!)) return
      const how = status === 'completed' ? 'completed' : 'failed'
      counts.move(number, at, { running: ran ? -1 : 0, [how]: 1 }, spent)
      setNode.run(how, at, number, node)
      heed(live, advance(live.plan, live.standing, node, how), at, nodeFailed(live))
    },

    /** A node has its result without having run. */
    taken(number: number, node: number, at: number): void {
      const live = load(number)
      counts.move(number, at, { running: live.standing.status[node] === 'running' ? -1 : 0, completed: 1 })
      const timeoutAt = start(live, at)
      if (timeoutAt !== undefined) changed(live, timeoutAt)
      setNode.run('completed', at, number, node)
      events.addOfExecution(number, live.organizationId, 'workflow_execution.node.cached', at, node)
      heed(live, advance(live.plan, live.standing, node, 'completed'), at, nodeFailed(live))
    },

    /** Ends it now: what has not ended is cancelled, and what runs, where its time is over, timed out. */
    stop(number: number, how: 'cancelled' | 'timed_out', at: number, error: ExecutionError | null): void {
      const live = load(number)
      const { status } = live.standing
      const over = { running: 0, failed: 0, skipped: 0 }
      for (const [node, before] of status.entries()) {
        if (isOver(before)) continue
        const after = how === 'timed_out' && before === 'running' ? 'timed_out' : 'cancelled'
        over[after === 'timed_out' ? 'failed' : 'skipped']++
        if (before === 'running') over.running--
        status[node] = after
        live.standing.open--
        setNode.run(after, at, number, node)
        if (before !== 'pending') withdraw(live, node, at)
      }
      counts.move(number, at, over)
      end(live, how, at, error)
      changed(live)
    },

    /** A transaction was undone: what is known of executions may not be so. */
    forget(): void {
      kept.clear()
    },
  }
  return flow
}
export type Flow = ReturnType<typeof openFlow>
