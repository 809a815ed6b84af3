import type { ExecutionInput, ExecutionWrite } from './advance.ts'
import { type ExecutionPlan, type ExecutionState, isStopped } from './execution-state.ts'
import { following, skips, stoppedNode } from './following.ts'
import { countItems, endsStopped, expanded, itemEnded, itemWaits, leaving, withdrawItems } from './items.ts'
import { announce, count, nodeWrite, started } from './writes.ts'

type Input<Type extends ExecutionInput['type']> = Extract<ExecutionInput, { type: Type }>

/** The list of a node is known: its first items get their jobs, unless a failure has stopped the execution. */
export function listKnown(
  plan: ExecutionPlan,
  state: ExecutionState,
  { node, count: length, kept = [], at }: Input<'list_known'>,
): ExecutionWrite[] {
  if (length > kept.length && isStopped(plan, state)) return stoppedList(plan, state, node, at)
  return [...expanded(node, length, plan.nodes[node]!.items!, kept), announce()]
}

/** A node with `for_each` runs from the start of its first item, or until that waits for something else, until its end. */
export function itemBegun(
  plan: ExecutionPlan,
  state: ExecutionState,
  { node, item, at, ...how }: Input<'item_started' | 'item_set_aside'>,
): ExecutionWrite[] {
  if (!state.items.get(node)?.open.has(item)) return []
  const isIdle = how.type === 'item_set_aside' && how.busy !== true
  if (isIdle && isStopped(plan, state)) return stoppedItem(plan, state, { node, item, at })
  const own: ExecutionWrite[] =
    how.type === 'item_started'
      ? [{ write: 'item', node, item, status: 'running' }, countItems(node, { running: 1 })]
      : itemWaits(state, { node, item, waits: isIdle })
  if (state.nodes[node] === 'running') return [...own, announce()]
  const start = started(plan, state, at)
  return [...own, nodeWrite(node, 'running'), count({ running: 1 }), ...start, announce(start)]
}

/** The other execution that a node, or an item of it, awaits only waits from now on, or no longer. */
export function nestedChanged(
  plan: ExecutionPlan,
  state: ExecutionState,
  { node, item, busy, at }: Input<'nested_changed'>,
): ExecutionWrite[] {
  const isOpen = item === null ? state.nodes[node] === 'waiting' : state.items.get(node)?.open.has(item)
  if (!isOpen) return []
  const stops = !busy && isStopped(plan, state)
  if (item === null) return stops ? stoppedNode(plan, state, node, at) : [{ write: 'busy', node, busy }]
  return stops ? stoppedItem(plan, state, { node, item, at }) : itemWaits(state, { node, item, waits: !busy })
}

/** A failure has stopped the execution, and this item would only wait: it is cancelled, and its node ends with the last one. */
function stoppedItem(
  plan: ExecutionPlan,
  state: ExecutionState,
  { node, item, at }: { node: number; item: number; at: number },
): ExecutionWrite[] {
  const items = state.items.get(node)!
  const ended: ExecutionWrite[] = [
    { write: 'item', node, item, status: 'cancelled' },
    { write: 'withdraw_item', node, item },
  ]
  return [...ended, ...(items.open.size === 1 ? stoppedList(plan, state, node, at) : [announce()])]
}

/** An item has ended: the next one gets its job, or the node ends. */
export function itemHasEnded(
  plan: ExecutionPlan,
  state: ExecutionState,
  { node, item, status, ran, spent, slotOf, at }: Input<'item_ended'>,
): ExecutionWrite[] {
  const items = state.items.get(node)
  if (!items?.open.has(item)) return []
  const { items: planned, modelId } = plan.nodes[node]!
  const used = spent ? [count(spent)] : []
  const how = status === 'completed' ? 'completed' : 'failed'
  const before = ran ? 'running' : items.open.get(item)
  if (how === 'completed' || planned!.onError === 'continue') {
    const isLast = isStopped(plan, state)
    const end = { item, status: how, before, cost: spent?.cost, slotOf } as const
    const ended = [...used, ...itemEnded(node, end, { planned: planned!, modelId, items, isLast })]
    if (isLast && endsStopped(items)) return [...ended, ...stoppedList(plan, state, node, at)]
    return [...ended, announce()]
  }
  return [
    ...used,
    { write: 'item', node, item, status: 'failed' },
    countItems(node, {
      failed: 1,
      ...leaving(before),
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
