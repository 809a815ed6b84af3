import {
  type Awaitable,
  type Clock,
  type ExecutionPlan,
  type ExecutionState,
  type ExecutionStatus,
  type NodeStatus,
  type OpenItem,
  restoredState,
  type StoredNode,
} from '../../dag/execution-state.ts'
import type { JobStatus } from '../store.ts'
import type { NewExecutionNode } from '../workflows.ts'
import { fromJson, selected } from './columns.ts'
import type { Connection } from './database.ts'

/** A node of a plan; its index in the plan is its number. */
export type StoredPlanNode = Omit<NewExecutionNode, 'reuses' | 'keepsItems'>

/** What the row of a node's job says of the node. */
export interface JobOfNode {
  jobStatus: JobStatus | null
  awaits: Awaitable | null
  /** A job that awaits items starts with the first of them. */
  startedAt: number | null
}

/** The status of a node whose row says `ready` while its job is unfinished. */
export const statusWith = (stored: NodeStatus, { jobStatus, awaits, startedAt }: JobOfNode): NodeStatus => {
  if (stored !== 'ready') return stored
  if (jobStatus === 'processing') return 'running'
  if (awaits === 'items') return startedAt === null ? 'ready' : 'running'
  return awaits === null ? 'ready' : 'waiting'
}

/** An unfinished execution in memory. */
export interface LiveExecution {
  number: number
  organizationId: string
  id: string
  tokenId: string
  workflowId: string | null
  priority: number
  traceparent: string | null
  /** The job of the node that runs it; null for one that a request has started. */
  parentJob: string | null
  /** The executions around it, the inner ones first: the number of each, and of its node that runs the next inner one. */
  ancestors: readonly Ancestor[]
  plan: ExecutionPlan & { nodes: readonly StoredPlanNode[] }
  state: ExecutionState
}

/** An execution and one of its nodes, by their numbers. */
interface Ancestor {
  number: number
  node: number
}

interface ExecutionRow
  extends Omit<LiveExecution, 'plan' | 'state' | 'ancestors'>,
    Omit<ExecutionPlan, 'nodes'>,
    Clock {
  status: ExecutionStatus
  plan: string
}

interface NodeRow extends JobOfNode {
  node: number
  status: NodeStatus
  at: number
  /** How many items its list has; null if that is not known yet, or it has none. */
  items: number | null
  /** Whether it awaits something outside of the execution, and nothing of that is queued or runs. */
  waits: number
}

/** Whether a job awaits something outside of its execution; of another execution also whether that only waits. */
const waits = `coalesce(jobs.awaits IN ('approval', 'event', 'time') OR (jobs.awaits = 'execution' AND EXISTS (SELECT 1
  FROM executions AS other WHERE other.organization_id = jobs.organization_id AND other.parent_job = jobs.id
  AND other.remaining_ms IS NOT NULL)), 0)`

/**
 * The unfinished executions. Their states are kept between events, because reading a thousand nodes at the end of each
 * of them would take a hundred times as long as the end itself.
 */
export function openLiveExecutions(connection: Connection) {
  const execution = connection.query<ExecutionRow>`SELECT
    ${selected('number, organizationId, id, tokenId, workflowId, priority, traceparent, parentJob, status, timeoutMs, timeoutAt, remainingMs, onFailure, plan')} FROM executions
    JOIN execution_plans ON execution = number WHERE number = ?`
  const nodes = connection.query<NodeRow>`SELECT n.node, n.status, n.at, n.items, jobs.status AS jobStatus, jobs.awaits,
    jobs.started_at AS startedAt, ${waits} AS waits FROM execution_nodes AS n LEFT JOIN jobs
    ON jobs.execution = n.execution AND jobs.item IS NULL AND jobs.node = n.node WHERE n.execution = ? ORDER BY n.node`
  const itemRows = connection.query<{ rows: number; end: number }>`SELECT count(*) AS rows,
    coalesce(max(item) + 1, 0) AS end FROM execution_items WHERE execution = ? AND node = ?`
  const itemsOf = connection.query<{ item: number }>`SELECT item FROM execution_items WHERE execution = ? AND node = ?
    ORDER BY item`
  const openItems = connection.query<{ item: number; job: string; waits: number }>`SELECT i.item, jobs.status AS job,
    ${waits} AS waits
    FROM execution_items AS i CROSS JOIN jobs ON jobs.execution = i.execution AND jobs.item = i.item AND jobs.node = i.node
    WHERE i.execution = ? AND i.node = ? AND i.status = 'ready' ORDER BY i.item`
  const wasStopped = connection.scalar<number>`SELECT EXISTS (SELECT 1 FROM execution_items WHERE execution = ?
    AND node = ? AND status = 'cancelled')`
  const parentOf = connection.query<Ancestor>`SELECT parent_execution AS number, parent_node AS node FROM executions
    WHERE number = ? AND parent_execution IS NOT NULL`
  const kept = openExecutionCache<LiveExecution>(({ plan }) =>
    plan.nodes.reduce((sum, { items }) => sum + 1 + (items?.parallel ?? 0), 0),
  )

  function ancestorsOf({ number, parentJob }: Pick<LiveExecution, 'number' | 'parentJob'>): Ancestor[] {
    const found: Ancestor[] = []
    if (parentJob === null) return found
    for (let one = parentOf.get(number); one; one = parentOf.get(one.number)) found.push(one)
    return found
  }

  function load(number: number): LiveExecution {
    const { status: own, timeoutMs, timeoutAt, remainingMs, onFailure, plan: text, ...row } = execution.get(number)!
    const plan = { nodes: fromJson<StoredPlanNode[]>(text), onFailure, timeoutMs }
    const held = nodes.all(number).map(row => nodeOf(number, row))
    const state = restoredState(plan, { status: own, clock: { timeoutAt, remainingMs }, nodes: held })
    return { ...row, ancestors: ancestorsOf(row), plan, state }
  }

  function nodeOf(
    number: number,
    { node, status: stored, at, items: count, waits: idle, ...job }: NodeRow,
  ): StoredNode {
    const status = statusWith(stored, job)
    if (status === 'waiting') return { status, at, busy: idle === 0 }
    if (stored !== 'ready' || count === null) return { status, at }
    const open = openItems.all(number, node).map(row => [row.item, openItemOf(row)] as const)
    const stopped = wasStopped.get(number, node) === 1
    return { status, at, items: { count, open, stopped, ...nextItem(number, node) } }
  }

  /** The first item without a row is the next one; those after it that have one are kept. */
  function nextItem(number: number, node: number): { next: number; kept: number[] } {
    const { rows, end } = itemRows.get(number, node)!
    if (rows === end) return { next: end, kept: [] }
    const all = itemsOf.all(number, node).map(({ item }) => item)
    const next = all.findIndex((item, at) => item !== at)
    return { next, kept: all.slice(next) }
  }

  return {
    /** The execution, as the rows of this transaction have it. */
    get(number: number): LiveExecution {
      const known = kept.get(number)
      if (known) return known
      const loaded = load(number)
      kept.keep(number, loaded)
      return loaded
    },
    drop: (number: number): void => kept.drop(number),
    clear: (): void => kept.clear(),
  }
}

const openItemOf = ({ job, waits: idle }: { job: string; waits: number }): OpenItem =>
  job === 'processing' ? 'running' : idle === 1 ? 'waiting' : 'ready'

/** How many nodes and open items are kept in memory, over all executions. */
const maxNodes = 100_000

/** The states of unfinished executions by number; the least recently used one is dropped first. */
function openExecutionCache<Live>(nodesOf: (live: Live) => number) {
  const kept = new Map<number, Live>()
  let nodes = 0

  function drop(number: number): void {
    const live = kept.get(number)
    if (live === undefined) return
    nodes -= nodesOf(live)
    kept.delete(number)
  }

  return {
    get(number: number): Live | undefined {
      const live = kept.get(number)
      if (live === undefined) return undefined
      kept.delete(number)
      kept.set(number, live)
      return live
    },
    keep(number: number, live: Live): void {
      drop(number)
      kept.set(number, live)
      nodes += nodesOf(live)
      while (nodes > maxNodes && kept.size > 1) drop(kept.keys().next().value!)
    },
    drop,
    clear(): void {
      kept.clear()
      nodes = 0
    },
  }
}
