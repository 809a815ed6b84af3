import type { ExecutionWrite } from './advance.ts'

/**
 * The states of a node: `pending` until all nodes before it have ended, `ready` while its job is in the queue, `running`
 * while it runs, `waiting` while its job is set aside until something else ends it.
 * Nodes are numbered in the order of the definition.
 */
export const nodeStatuses = [
  'pending',
  'ready',
  'running',
  'waiting',
  'completed',
  'failed',
  'skipped',
  'cancelled',
  'timed_out',
] as const
export type NodeStatus = (typeof nodeStatuses)[number]

/**
 * What the job of a waiting node awaits: the items of its list, a person's answer, an event from outside, a point in time, or
 * another execution.
 */
export const awaitables = ['items', 'approval', 'event', 'time', 'execution'] as const
export type Awaitable = (typeof awaitables)[number]

/** Why a node was skipped: its condition was false, a node before it was skipped, or another node has failed. */
export const skipReasons = ['condition', 'skipped_node', 'failure'] as const
export type SkipReason = (typeof skipReasons)[number]

export const executionStatuses = ['pending', 'running', 'completed', 'failed', 'cancelled', 'timed_out'] as const
export type ExecutionStatus = (typeof executionStatuses)[number]
export type EndStatus = Exclude<ExecutionStatus, 'pending' | 'running'>

/** The part of an execution that never changes. */
export interface ExecutionPlan {
  nodes: readonly PlannedNode[]
  /** Whether the first failure skips all nodes that have not started, or only those that come after it. */
  onFailure: 'fail_fast' | 'continue'
  /** Milliseconds from the start of its first node. */
  timeoutMs: number
}
export interface PlannedNode {
  modelId: string
  successors: readonly number[]
  /** How many nodes must end well before it starts. */
  predecessors: number
  /** With `continue`, its failure counts as an end like any other. */
  onError: 'fail' | 'continue'
  /** Its job may start at once: it has no condition, and no cached result has to be looked up before. */
  direct: boolean
  /** With `any`, it runs if one of its predecessors has ended well, even if others were skipped. Default: `all`. */
  join?: 'all' | 'any'
  /** It has a given result instead of running: it is completed from the start. */
  pinned?: true
  /** The predecessors without which it runs too if they were skipped, because it has defaults for their results. */
  optional?: readonly number[]
}

/** The state of an execution: read by `advance`, changed only by `applyWrites`. */
export interface ExecutionState {
  status: ExecutionStatus
  nodes: NodeStatus[]
  /** For each node, how many predecessors have not ended yet; a failure that is not tolerated is no end. */
  missing: number[]
  /** The predecessors of a node that were skipped, for the nodes that have such. */
  absent: Map<number, ReadonlySet<number>>
  /** How many nodes have not ended. */
  open: number
  /** The earliest failure of a node with `onError: 'fail'`. */
  firstFailure: { node: number; at: number } | null
}

const endedStatuses: ReadonlySet<NodeStatus> = new Set(['completed', 'failed', 'skipped', 'cancelled', 'timed_out'])
/** Whether a node has ended, in any way. */
export const isOver = (status: NodeStatus): boolean => endedStatuses.has(status)

/** The initial state of an execution. `reused`: nodes that reuse the results of another execution, or are pinned. */
export function newState(plan: ExecutionPlan, reused: ReadonlySet<number> = new Set()): ExecutionState {
  return restoredState(plan, {
    status: 'pending',
    nodes: plan.nodes.map((_, node) => ({ status: reused.has(node) ? 'completed' : 'pending', at: 0 })),
  })
}

/** The state of an execution from stored rows: the status of each node and when it was set. */
export function restoredState(
  plan: ExecutionPlan,
  stored: { status: ExecutionState['status']; nodes: readonly { status: NodeStatus; at: number }[] },
): ExecutionState {
  const state: ExecutionState = {
    status: stored.status,
    nodes: stored.nodes.map(({ status }) => status),
    missing: plan.nodes.map(({ predecessors }) => predecessors),
    absent: new Map(),
    open: 0,
    firstFailure: null,
  }
  for (const [node, { status, at }] of stored.nodes.entries())
    if (isOver(status)) ended(plan, state, node, at)
    else state.open++
  return state
}

/** Applies the writes of `advance` to the state, so that it equals what the store now holds. */
export function applyWrites(
  plan: ExecutionPlan,
  state: ExecutionState,
  writes: readonly ExecutionWrite[],
  at: number,
): void {
  for (const one of writes)
    if (one.write === 'start') state.status = 'running'
    else if (one.write === 'end') state.status = one.status
    else if (one.write === 'create_job') state.nodes[one.node] = one.takesSlotOf === null ? 'ready' : 'running'
    else if (one.write === 'node') {
      state.nodes[one.node] = one.status
      if (!isOver(one.status)) continue
      state.open--
      ended(plan, state, one.node, at)
    }
}

/** Counts the end of a node for its successors. */
function ended(plan: ExecutionPlan, state: ExecutionState, node: number, at: number): void {
  const status = state.nodes[node]
  const { onError, successors } = plan.nodes[node]!
  if (status === 'completed' || status === 'skipped' || (status === 'failed' && onError === 'continue'))
    for (const after of successors) {
      state.missing[after]!--
      if (status === 'skipped') state.absent.set(after, new Set(state.absent.get(after)).add(node))
    }
  else if (status === 'failed') state.firstFailure = earlierFailure(state.firstFailure, { node, at })
}

/** The earlier of two failures; of two at the same time, that of the lower node number. */
export function earlierFailure(
  a: ExecutionState['firstFailure'],
  b: ExecutionState['firstFailure'],
): ExecutionState['firstFailure'] {
  if (!a || !b) return a ?? b
  return b.at < a.at || (b.at === a.at && b.node < a.node) ? b : a
}
