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

/** The states of an item: `ready` while its job is in the queue, `waiting` while that is set aside, `running` while it runs. */
export const itemStatuses = ['ready', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const
export type ItemStatus = (typeof itemStatuses)[number]

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
  /** Milliseconds from the start of its first node, without the time in which it only waits. */
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
  /** Its task runs once for each item of a list. */
  items?: PlannedItems
}
export interface PlannedItems {
  /** How many items have a job that has not ended, at most. */
  parallel: number
  /** With `fail`, the first item that fails for good fails the node. */
  onError: 'fail' | 'continue'
  /** As that of the node, for the jobs of the items. */
  direct: boolean
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
  /** The items of the nodes whose list is known and that have not ended. */
  items: Map<number, ItemsState>
  /** The earliest failure of a node with `onError: 'fail'`. */
  firstFailure: { node: number; at: number } | null
  /** The waiting nodes whose other execution does not only wait. */
  busy: Set<number>
  /**
   * How many nodes have begun and not ended, and how many of these do more than wait. Counted with each change, because looking
   * at ten thousand nodes takes a millisecond.
   */
  begun: number
  atWork: number
  clock: Clock
}

/**
 * The time limit of an execution: when it times out, in epoch milliseconds; or, while it only waits, how many milliseconds
 * are left. Both are null before its start.
 */
export interface Clock {
  timeoutAt: number | null
  remainingMs: number | null
}

/** The items of a node. Those before `next` that are not open have ended; some after it may be completed from the start. */
export interface ItemsState {
  count: number
  /** The next item that gets a job; `count` if all have or had one. */
  next: number
  /** The items whose job has not ended. */
  open: Map<number, OpenItem>
  /** How many of the open items wait. */
  waiting: number
  /** Whether items were cancelled while others ran: the node ends with those, without a result. */
  stopped: boolean
  /** The items after `next` that were completed from the start. */
  kept: Set<number>
}

/** The state of an item that has not ended. `waiting`: nothing of it is queued or runs until something else ends its wait. */
export type OpenItem = 'ready' | 'running' | 'waiting'

/** A node as stored rows have it: its status, when it was set, and its items if its list is known. */
export interface StoredNode {
  status: NodeStatus
  at: number
  /** Whether it awaits another execution that does not only wait. */
  busy?: boolean
  items?: {
    count: number
    next: number
    open: readonly (readonly [item: number, status: OpenItem])[]
    stopped: boolean
    kept: readonly number[]
  }
}

const endedStatuses: ReadonlySet<NodeStatus> = new Set(['completed', 'failed', 'skipped', 'cancelled', 'timed_out'])
/** Whether a node has ended, in any way. */
export const isOver = (status: NodeStatus): boolean => endedStatuses.has(status)

/** The initial state of an execution. `reused`: nodes that reuse the results of another execution, or are pinned. */
export function newState(plan: ExecutionPlan, reused: ReadonlySet<number> = new Set()): ExecutionState {
  return restoredState(plan, {
    status: 'pending',
    clock: { timeoutAt: null, remainingMs: null },
    nodes: plan.nodes.map((_, node) => ({ status: reused.has(node) ? 'completed' : 'pending', at: 0 })),
  })
}

/** The state of an execution from stored rows. */
export function restoredState(
  plan: ExecutionPlan,
  stored: { status: ExecutionState['status']; clock: Clock; nodes: readonly StoredNode[] },
): ExecutionState {
  const state: ExecutionState = {
    status: stored.status,
    nodes: stored.nodes.map(({ status }) => status),
    missing: plan.nodes.map(({ predecessors }) => predecessors),
    absent: new Map(),
    open: 0,
    items: new Map(),
    firstFailure: null,
    busy: new Set(),
    begun: 0,
    atWork: 0,
    clock: { ...stored.clock },
  }
  for (const [node, { status, at, busy, items }] of stored.nodes.entries())
    if (isOver(status)) ended(plan, state, node, at)
    else {
      state.open++
      if (busy) state.busy.add(node)
      if (items) state.items.set(node, itemsState(items))
      addNode(state, node, 1)
    }
  return state
}

function itemsState({ kept, ...stored }: NonNullable<StoredNode['items']>): ItemsState {
  const open = new Map(stored.open)
  const waiting = [...open.values()].filter(status => status === 'waiting').length
  return { ...stored, open, waiting, kept: new Set(kept) }
}

/** Counts a node in `begun` and `atWork` as it is now; -1: no longer, before it changes. */
function addNode(state: ExecutionState, node: number, by: 1 | -1): void {
  const status = state.nodes[node]
  if (status !== 'ready' && status !== 'running' && status !== 'waiting') return
  state.begun += by
  const items = state.items.get(node)
  const waits =
    status === 'waiting' ? !state.busy.has(node) : items && items.open.size > 0 && items.waiting === items.open.size
  if (!waits) state.atWork += by
}

/** Applies the writes of `advance` to the state, so that it equals what the store now holds. */
export function applyWrites(
  plan: ExecutionPlan,
  state: ExecutionState,
  writes: readonly ExecutionWrite[],
  at: number,
): void {
  for (const one of writes)
    if (one.write === 'start') {
      state.status = 'running'
      state.clock.timeoutAt = one.timeoutAt
    } else if (one.write === 'clock') state.clock = one.clock
    else if (one.write === 'end') state.status = one.status
    else if (isOfNode(one)) {
      addNode(state, one.node, -1)
      applyToNode(plan, state, one, at)
      addNode(state, one.node, 1)
    }
}

type NodeWrite = Extract<ExecutionWrite, { write: 'busy' | 'create_job' | 'expand' | 'create_item' | 'item' | 'node' }>
const nodeWrites: ReadonlySet<ExecutionWrite['write']> = new Set<NodeWrite['write']>([
  'busy',
  'create_job',
  'expand',
  'create_item',
  'item',
  'node',
])
const isOfNode = (one: ExecutionWrite): one is NodeWrite => nodeWrites.has(one.write)

function applyToNode(plan: ExecutionPlan, state: ExecutionState, one: NodeWrite, at: number): void {
  const { node } = one
  if (one.write === 'busy') setMember(state.busy, node, one.busy)
  else if (one.write === 'create_job') state.nodes[node] = one.takesSlotOf === null ? 'ready' : 'running'
  else if (one.write === 'expand') {
    state.nodes[node] = 'ready'
    const kept = new Set(one.kept)
    const next = nextOf(0, kept)
    state.items.set(node, { count: one.count, next, open: new Map(), waiting: 0, stopped: false, kept })
  } else if (one.write === 'create_item') {
    const items = state.items.get(node)!
    items.open.set(one.item, one.takesSlot ? 'running' : 'ready')
    items.next = nextOf(one.item + 1, items.kept)
  } else if (one.write === 'item') setItem(state.items.get(node)!, one.item, one.status)
  else {
    state.nodes[node] = one.status
    if (!isOver(one.status)) return
    state.open--
    state.items.delete(node)
    state.busy.delete(node)
    ended(plan, state, node, at)
  }
}

function setItem(items: ItemsState, item: number, status: ItemStatus): void {
  if (items.open.get(item) === 'waiting') items.waiting--
  if (status === 'waiting') items.waiting++
  if (status === 'ready' || status === 'running' || status === 'waiting') items.open.set(item, status)
  else items.open.delete(item)
  if (status === 'cancelled') items.stopped = true
}

/** The first item from this one on that is not kept. Removes those that it passes. */
function nextOf(from: number, kept: Set<number>): number {
  let next = from
  while (kept.delete(next)) next++
  return next
}

function setMember(set: Set<number>, member: number, isIn: boolean): void {
  if (isIn) set.add(member)
  else set.delete(member)
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

/** Whether a failure has stopped the execution: nothing of it starts any more, and it ends with what runs. */
export const isStopped = (plan: Pick<ExecutionPlan, 'onFailure'>, { firstFailure }: ExecutionState): boolean =>
  plan.onFailure === 'fail_fast' && firstFailure !== null

/** The earlier of two failures; of two at the same time, that of the lower node number. */
export function earlierFailure(
  a: ExecutionState['firstFailure'],
  b: ExecutionState['firstFailure'],
): ExecutionState['firstFailure'] {
  if (!a || !b) return a ?? b
  return b.at < a.at || (b.at === a.at && b.node < a.node) ? b : a
}
