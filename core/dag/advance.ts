import type { Usage } from '../usage.ts'
import {
  type EndStatus,
  type ExecutionPlan,
  type ExecutionState,
  earlierFailure,
  type ItemStatus,
  isOver,
  isStopped,
  type NodeStatus,
  type SkipReason,
} from './execution-state.ts'
import {
  countItems,
  endsStopped,
  expanded,
  type ItemCountChange,
  isWithoutRunningItems,
  itemEnded,
  withdrawItems,
} from './items.ts'
import { descendants, reachedBy } from './successors.ts'

/** An event of an execution, with its time in epoch milliseconds. */
export type ExecutionInput = { at: number } & (
  | { type: 'dequeued' | 'cancelled' | 'timed_out' }
  /** `queued`: it waits until it is dequeued. Without effect if all results are reused. */
  | { type: 'created'; queued?: boolean }
  | { type: 'job_started' | 'job_requeued'; node: number }
  /** The job is in no queue until something else ends it. */
  | { type: 'job_set_aside'; node: number }
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
  /** The list of a node with `for_each` has this many items: the node's job waits for them. */
  | { type: 'list_known'; node: number; count: number }
  | { type: 'item_started' | 'item_set_aside'; node: number; item: number }
  | { type: 'item_requeued'; node: number; item: number }
  /** The job of an item has ended, or its result is that of another job. */
  | {
      type: 'item_ended'
      node: number
      item: number
      status: 'completed' | 'failed' | 'cancelled'
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
  | { write: 'end'; status: EndStatus; failure: FailedNodes | null }
  | { write: 'node'; node: number; status: Exclude<NodeStatus, 'pending' | 'skipped'> }
  | { write: 'node'; node: number; status: 'skipped'; reason: SkipReason }
  /** The job of a ready node: it waits, or runs at once on the slot that another node's job has kept for it. */
  | { write: 'create_job'; node: number; takesSlotOf: number | null }
  /** The job of the node must no longer run. */
  | { write: 'withdraw_job'; node: number }
  | { write: 'count'; by: CountChange }
  /** The node has this many items. Its job waits for them, and starts with the first of them. */
  | { write: 'expand'; node: number; count: number }
  /** The job of an item: it waits, or runs at once on the slot that the job of another item has kept for it. */
  | { write: 'create_item'; node: number; item: number; takesSlot: boolean }
  | { write: 'item'; node: number; item: number; status: Exclude<ItemStatus, 'waiting'> }
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
      const { node, at } = input
      const start = started(plan, state, at)
      return [nodeWrite(node, 'waiting'), count({ waiting: 1 }), ...start, announce(start)]
    }
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
    case 'list_known': {
      const { node, count: length, at } = input
      if (length > 0 && isStopped(plan, state)) return stoppedList(plan, state, node, at)
      return [...expanded(node, length, plan.nodes[node]!.items!), announce()]
    }
    case 'item_started':
    case 'item_set_aside':
      return itemBegun(plan, state, input)
    case 'item_requeued': {
      const { node, item } = input
      if (!state.items.get(node)?.open.has(item)) return []
      return [{ write: 'item', node, item, status: 'ready' }, countItems(node, { running: -1 }), announce()]
    }
    case 'item_ended':
      return endOfItem(plan, state, input)
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

/** A node with `for_each` runs from the start of its first item, or until that waits for something else, until its end. */
function itemBegun(
  plan: ExecutionPlan,
  state: ExecutionState,
  { type, node, item, at }: Extract<ExecutionInput, { type: 'item_started' | 'item_set_aside' }>,
): ExecutionWrite[] {
  if (!state.items.get(node)?.open.has(item)) return []
  const own: ExecutionWrite[] =
    type === 'item_started' ? [{ write: 'item', node, item, status: 'running' }, countItems(node, { running: 1 })] : []
  if (state.nodes[node] === 'running') return [...own, announce()]
  const start = started(plan, state, at)
  return [...own, nodeWrite(node, 'running'), count({ running: 1 }), ...start, announce(start)]
}

function endOfItem(
  plan: ExecutionPlan,
  state: ExecutionState,
  { node, item, status, spent, slotOf, at }: Extract<ExecutionInput, { type: 'item_ended' }>,
): ExecutionWrite[] {
  const items = state.items.get(node)
  if (!items?.open.has(item)) return []
  const { items: planned, modelId } = plan.nodes[node]!
  const used = spent ? [count(spent)] : []
  const how = status === 'completed' ? 'completed' : 'failed'
  if (how === 'completed' || planned!.onError === 'continue') {
    const isLast = isStopped(plan, state)
    const end = { item, status: how, cost: spent?.cost, slotOf } as const
    const ended = [...used, ...itemEnded(node, end, { planned: planned!, modelId, items, isLast })]
    if (isLast && endsStopped(items)) return [...ended, ...stoppedList(plan, state, node, at)]
    return [...ended, announce()]
  }
  const wasRunning = items.open.get(item) === 'running'
  return [
    ...used,
    { write: 'item', node, item, status: 'failed' },
    countItems(node, {
      failed: 1,
      ...(wasRunning ? { running: -1 } : {}),
      ...(spent?.cost ? { cost: spent.cost } : {}),
    }),
    ...withdrawItems(state, node, { except: item }),
    { write: 'fail_job', node, item },
    count({ running: state.nodes[node] === 'running' ? -1 : 0, failed: 1 }),
    nodeWrite(node, 'failed'),
    ...following(plan, state, { node, how: 'failed', at }),
  ]
}

/** A failure has stopped the execution, and nothing of this list runs any more: its node ends without a result. */
function stoppedList(plan: ExecutionPlan, state: ExecutionState, node: number, at: number): ExecutionWrite[] {
  const writes = [...skips([node], 'failure'), ...(state.nodes[node] === 'running' ? [count({ running: -1 })] : [])]
  return [...writes, { write: 'withdraw_job', node }, ...following(plan, state, { node, how: 'skipped', at })]
}

/**
 * What follows from the end of a node: jobs of its successors, or skipped nodes, and perhaps the end of the execution.
 */
function following(
  plan: ExecutionPlan,
  state: ExecutionState,
  {
    node,
    how,
    at,
    slotOf,
  }: { node: number; how: 'completed' | 'failed' | 'skipped'; at: number; slotOf?: string | undefined },
  start: readonly ExecutionWrite[] = [],
): ExecutionWrite[] {
  const { onError } = plan.nodes[node]!
  const writes: ExecutionWrite[] = []
  let skipped: readonly number[]
  if (how !== 'failed' || onError === 'continue') {
    const reached = reachedBy(plan, state, node, how === 'skipped')
    const { ready } = reached
    ;({ skipped } = reached)
    writes.push(...skips(skipped, 'skipped_node'))
    const next = ready.find(after => plan.nodes[after]!.direct && plan.nodes[after]!.modelId === slotOf)
    for (const after of ready)
      if (after === next) writes.push({ write: 'create_job', node: after, takesSlotOf: node }, count({ running: 1 }))
      else writes.push({ write: 'create_job', node: after, takesSlotOf: null })
  } else {
    skipped = plan.onFailure === 'fail_fast' ? notRunning(state, node) : descendants(plan, state, node)
    writes.push(...skips(skipped, 'failure', state))
    if (plan.onFailure === 'fail_fast')
      for (const list of state.items.keys())
        if (list !== node && !skipped.includes(list)) writes.push(...withdrawItems(state, list, { onlyIdle: true }))
  }
  const ended = state.open === 1 + skipped.length
  if (!ended) return [...writes, announce(start)]
  const failed = how === 'failed' && onError === 'fail' ? { node, at } : null
  const first = earlierFailure(state.firstFailure, failed)
  const now = how === 'skipped' ? [node, ...skipped] : skipped
  const failure = first && failedNodes(state, first.node, how === 'failed' ? node : null, now)
  const status = failure ? 'failed' : 'completed'
  return [...writes, end(status, failure), event(status), announce(start, true)]
}

/** The writes that skip nodes of which nothing runs; those that are pending have no job. */
function skips(nodes: readonly number[], reason: SkipReason, state?: ExecutionState): ExecutionWrite[] {
  if (nodes.length === 0) return []
  const running = nodes.filter(node => state?.nodes[node] === 'running').length
  const fewer = { ...(running > 0 ? { running: -running } : {}), ...(state && noLongerWaiting(state, nodes)) }
  const writes: ExecutionWrite[] = [count({ skipped: nodes.length, ...fewer })]
  for (const node of nodes) {
    if (state) writes.push(...withdrawItems(state, node))
    writes.push(skip(node, reason), event('node.skipped', node))
    if (state && state.nodes[node] !== 'pending') writes.push({ write: 'withdraw_job', node })
  }
  return writes
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

/** The start of the execution, if this is its first node. */
const started = ({ timeoutMs }: ExecutionPlan, { status }: ExecutionState, at: number): ExecutionWrite[] =>
  status === 'pending' ? [{ write: 'start', timeoutAt: at + timeoutMs }, event('started')] : []

const count = (by: CountChange): ExecutionWrite => ({ write: 'count', by })
const skip = (node: number, reason: SkipReason): ExecutionWrite => ({ write: 'node', node, status: 'skipped', reason })
const nodeWrite = (node: number, status: Exclude<NodeStatus, 'pending' | 'skipped'>): ExecutionWrite => ({
  write: 'node',
  node,
  status,
})
const event = (name: ExecutionEventName, node: number | null = null): ExecutionWrite => ({
  write: 'event',
  event: name,
  node,
})
const end = (status: EndStatus, failure: FailedNodes | null = null): ExecutionWrite => ({
  write: 'end',
  status,
  failure,
})
function announce([start]: readonly ExecutionWrite[] = [], ended = false): ExecutionWrite {
  return { write: 'announce', ended, timeoutAt: start?.write === 'start' ? start.timeoutAt : undefined }
}

function failedNodes(state: ExecutionState, first: number, last: number | null, skipped: readonly number[]) {
  const now = new Set(skipped)
  const select = (status: NodeStatus, also: (node: number) => boolean): number[] =>
    [...state.nodes.keys()].filter(node => state.nodes[node] === status || also(node))
  return {
    node: first,
    failed: select('failed', node => node === last),
    skipped: select('skipped', node => now.has(node)),
  }
}

/** What the end of these nodes changes in the count of waiting ones. */
function noLongerWaiting({ nodes }: ExecutionState, ended: readonly number[]): CountChange {
  const waiting = ended.filter(node => nodes[node] === 'waiting').length
  return waiting === 0 ? {} : { waiting: -waiting }
}

/** Whether a node has a job that does not run. */
const hasIdleJob = (status: NodeStatus): boolean => status === 'ready' || status === 'waiting'

/** The nodes of which nothing runs: also lists that wait for items, none of which runs. */
function notRunning({ nodes, items }: ExecutionState, except: number): number[] {
  const isIdle = (node: number): boolean => {
    if (nodes[node] === 'pending' || hasIdleJob(nodes[node]!)) return true
    const those = nodes[node] === 'running' ? items.get(node) : undefined
    return those !== undefined && isWithoutRunningItems(those)
  }
  return [...nodes.keys()].filter(node => node !== except && isIdle(node))
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
