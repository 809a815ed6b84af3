import type { Usage } from '../usage.ts'
import {
  type Clock,
  type EndStatus,
  type ExecutionPlan,
  type ExecutionState,
  type ItemStatus,
  isOver,
  isStopped,
  type NodeStatus,
  type SkipReason,
} from './execution-state.ts'
import { following, noLongerWaiting, stoppedNode } from './following.ts'
import { itemBegun, itemHasEnded, listKnown, nestedChanged } from './item-events.ts'
import { countItems, type ItemCountChange, withdrawItems } from './items.ts'
import { announce, count, end, event, nodeWrite, skip, started } from './writes.ts'

/** An event of an execution, with its time in epoch milliseconds. */
export type ExecutionInput = { at: number } & (
  | { type: 'dequeued' | 'cancelled' | 'timed_out' }
  /** `queued`: it waits until it is dequeued. Without effect if all results are reused. */
  | { type: 'created'; queued?: boolean }
  | { type: 'job_started' | 'job_requeued'; node: number }
  /** The job is in no queue until something else ends it. `busy`: that is another execution, which begins. */
  | { type: 'job_set_aside'; node: number; busy?: boolean }
  /** The other execution that a node, or an item of it, awaits only waits from now on; or no longer (`busy`). */
  | { type: 'nested_changed'; node: number; item: number | null; busy: boolean }
  | {
      type: 'job_ended'
      node: number
      status: 'completed' | 'failed' | 'cancelled'
      /** Whether the job was running until now, or was set aside. */
      ran: boolean
      waited?: boolean
      spent?: Spent
      /** The model of the slot that is kept for a following job; absent if none is kept. */
      slotOf?: string | undefined
    }
  /** The node reuses the result of another job; `ran`: its own job was running until now. */
  | { type: 'result_reused'; node: number; ran: boolean }
  /** The condition of a node is false; `ran`: its job was running until now. */
  | { type: 'condition_false'; node: number; ran: boolean }
  /**
   * The list of a node with `for_each` has this many items: the node's job waits for them. `kept`: those that are completed
   * from the start, in order.
   */
  | { type: 'list_known'; node: number; count: number; kept?: readonly number[] }
  | { type: 'item_started'; node: number; item: number }
  | { type: 'item_set_aside'; node: number; item: number; busy?: boolean }
  | { type: 'item_requeued'; node: number; item: number }
  /**
   * The job of an item has ended, or its result is that of another job. `ran`: it was running until now; a state that is read
   * after the end of the job knows it only as open.
   */
  | {
      type: 'item_ended'
      node: number
      item: number
      status: 'completed' | 'failed' | 'cancelled'
      ran?: boolean
      spent?: Spent
      slotOf?: string | undefined
    }
)
export interface Spent extends Usage {
  /** Millionths of the currency unit. */
  cost: number
}

/**
 * Changes of the node counts, which may be negative, and the usage. Skipped includes cancelled, failed includes timed
 * out.
 */
export type CountChange = Partial<Record<'running' | 'waiting' | 'completed' | 'failed' | 'skipped', number>> &
  Partial<Spent>

/** One write for the store; apply them in the given order. */
export type ExecutionWrite =
  /** The first node starts: the time limit of the execution counts from now on. */
  | { write: 'start'; timeoutAt: number }
  /** The time limit stops, or goes on. */
  | { write: 'clock'; clock: Clock }
  /** Whether a waiting node awaits another execution that does not only wait. */
  | { write: 'busy'; node: number; busy: boolean }
  | { write: 'end'; status: EndStatus; failure: FailedNodes | null }
  | { write: 'node'; node: number; status: Exclude<NodeStatus, 'pending' | 'skipped'> }
  | { write: 'node'; node: number; status: 'skipped'; reason: SkipReason }
  /** The job of a ready node: it waits, or runs at once on the slot that another node's job has kept for it. */
  | { write: 'create_job'; node: number; takesSlotOf: number | null }
  /** The job of the node must no longer run. */
  | { write: 'withdraw_job'; node: number }
  | { write: 'count'; by: CountChange }
  /** The node has this many items, some completed from the start. Its job waits for the others, and starts with their first. */
  | { write: 'expand'; node: number; count: number; kept: readonly number[] }
  /** The job of an item: it waits, or runs at once on the slot that the job of another item has kept for it. */
  | { write: 'create_item'; node: number; item: number; takesSlot: boolean }
  | { write: 'item'; node: number; item: number; status: ItemStatus }
  /** The job of an item must no longer run. */
  | { write: 'withdraw_item'; node: number; item: number }
  | { write: 'count_items'; node: number; by: ItemCountChange }
  /** The node's job ends, because this item has failed. */
  | { write: 'fail_job'; node: number; item: number }
  /** All items have ended: the node's job ends with their results. */
  | { write: 'gather'; node: number }
  | { write: 'event'; event: ExecutionEventName; node: number | null }
  /** What is announced after the commit. */
  | { write: 'announce'; ended: boolean; timeoutAt?: number | undefined }

export type ExecutionEventName = 'created' | 'started' | EndStatus | 'node.skipped' | 'node.cached' | 'node.pinned'

/** Why an execution has failed: the first failure, and all nodes that have failed or were skipped. */
export interface FailedNodes {
  node: number
  failed: number[]
  skipped: number[]
}

/**
 * The state machine of an execution: returns what follows from an event, in the order of the writes, as plain data for a
 * store to write. Pure: the time is in the event. Does not change the state; a repeated end has no effect.
 */
export function advance(plan: ExecutionPlan, state: ExecutionState, input: ExecutionInput): ExecutionWrite[] {
  switch (input.type) {
    case 'created':
      return created(plan, state, input)
    case 'dequeued':
      return [...firstJobs(plan, state), announce()]
    case 'cancelled':
    case 'timed_out':
      return stopped(state, input.type)
    case 'job_started': {
      const start = started(plan, state, input.at)
      return [nodeWrite(input.node, 'running'), count({ running: 1 }), ...start, announce(start)]
    }
    case 'job_requeued': {
      const waits = state.nodes[input.node] === 'running' ? [nodeWrite(input.node, 'ready')] : []
      return [count({ running: -1 }), ...waits, announce()]
    }
    case 'job_set_aside': {
      const { node, busy = false, at } = input
      if (!busy && isStopped(plan, state)) return stoppedNode(plan, state, node, at)
      const start = started(plan, state, at)
      const others: ExecutionWrite[] = busy ? [{ write: 'busy', node, busy }] : []
      return [nodeWrite(node, 'waiting'), ...others, count({ waiting: 1 }), ...start, announce(start)]
    }
    case 'nested_changed':
      return nestedChanged(plan, state, input)
    case 'job_ended':
      return jobEnded(plan, state, input)
    case 'result_reused': {
      const { node, at } = input
      const start = started(plan, state, at)
      return [
        count({ running: input.ran ? -1 : 0, completed: 1 }),
        ...start,
        nodeWrite(node, 'completed'),
        event('node.cached', node),
        ...following(plan, state, { node, how: 'completed', at }, start),
      ]
    }
    case 'list_known':
      return listKnown(plan, state, input)
    case 'item_started':
    case 'item_set_aside':
      return itemBegun(plan, state, input)
    case 'item_requeued': {
      const { node, item } = input
      if (!state.items.get(node)?.open.has(item)) return []
      return [{ write: 'item', node, item, status: 'ready' }, countItems(node, { running: -1 }), announce()]
    }
    case 'item_ended':
      return itemHasEnded(plan, state, input)
    case 'condition_false': {
      const { node, ran, at } = input
      const start = started(plan, state, at)
      return [
        count({ running: ran ? -1 : 0, skipped: 1 }),
        ...start,
        skip(node, 'condition'),
        event('node.skipped', node),
        ...following(plan, state, { node, how: 'skipped', at }, start),
      ]
    }
  }
}

function created(
  plan: ExecutionPlan,
  state: ExecutionState,
  { at, queued = false }: Extract<ExecutionInput, { type: 'created' }>,
): ExecutionWrite[] {
  const pinned = plan.nodes.flatMap((planned, node) => (planned.pinned ? [event('node.pinned', node)] : []))
  if (state.open > 0) return [event('created'), ...pinned, ...(queued ? [] : firstJobs(plan, state)), announce()]
  // All results are reused or pinned.
  const start = started(plan, state, at)
  return [event('created'), ...pinned, ...start, end('completed'), event('completed'), announce(start, true)]
}

/** The jobs of the nodes that need no other one. */
const firstJobs = (plan: ExecutionPlan, state: ExecutionState): ExecutionWrite[] =>
  [...plan.nodes.keys()]
    .filter(node => state.nodes[node] === 'pending' && state.missing[node] === 0)
    .map(node => ({ write: 'create_job', node, takesSlotOf: null }))

function jobEnded(
  plan: ExecutionPlan,
  state: ExecutionState,
  { node, status, ran, waited = false, spent, slotOf, at }: Extract<ExecutionInput, { type: 'job_ended' }>,
): ExecutionWrite[] {
  if (isOver(state.nodes[node]!)) return []
  const how = status === 'completed' ? 'completed' : 'failed'
  const hasItems = state.items.has(node)
  const isRunning = hasItems ? state.nodes[node] === 'running' : ran
  // Of a list without items, or whose items all reuse results, nothing has started.
  const start = hasItems && how === 'completed' ? started(plan, state, at) : []
  return [
    ...withdrawItems(state, node),
    count({ running: isRunning ? -1 : 0, ...(waited && !hasItems ? { waiting: -1 } : {}), [how]: 1, ...spent }),
    ...start,
    nodeWrite(node, how),
    ...following(plan, state, { node, how, at, slotOf }, start),
  ]
}

function stopped(state: ExecutionState, how: 'cancelled' | 'timed_out'): ExecutionWrite[] {
  if (state.open === 0) return []
  const writes: ExecutionWrite[] = []
  const by = { running: 0, failed: 0, skipped: 0 }
  for (const [node, before] of state.nodes.entries()) {
    if (isOver(before)) continue
    const begun = before === 'running' || before === 'waiting'
    const after = how === 'timed_out' && begun ? 'timed_out' : 'cancelled'
    by[after === 'timed_out' ? 'failed' : 'skipped']++
    if (before === 'running') by.running--
    writes.push(...withdrawItems(state, node), nodeWrite(node, after))
    if (before !== 'pending') writes.push({ write: 'withdraw_job', node })
  }
  const waiting = noLongerWaiting(state, [...state.nodes.keys()])
  return [...writes, count({ ...by, ...waiting }), end(how), event(how), announce([], true)]
}

/**
 * Returns the models of the nodes that start when those that are ready or running have ended well, each once. Empty once the
 * execution has ended.
 */
export function nextModels(plan: ExecutionPlan, state: ExecutionState): string[] {
  const ends = new Map<number, number>()
  const models = new Set<string>()
  for (const [node, status] of state.nodes.entries()) {
    if (status !== 'ready' && status !== 'running') continue
    for (const after of plan.nodes[node]!.successors) {
      if (state.nodes[after] !== 'pending') continue
      const count = (ends.get(after) ?? 0) + 1
      ends.set(after, count)
      if (count === state.missing[after]) models.add(plan.nodes[after]!.modelId)
    }
  }
  return [...models]
}
