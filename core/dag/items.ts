import type { ExecutionWrite } from './advance.ts'
import type { ExecutionState, ItemsState, OpenItem, PlannedItems } from './execution-state.ts'

/**
 * The items of a node with `for_each`: its task runs once for each item of a list. Items get their jobs in order, and only
 * as many at once as the node allows. The functions return writes as data, like `advance`.
 */

/**
 * Changes of the counts of the items of a node, which may be negative, and what they have cost in millionths of the
 * currency unit. Cancelled items are in none of the counts.
 */
export type ItemCountChange = Partial<Record<'running' | 'waiting' | 'completed' | 'failed' | 'cost', number>>

/** The list of the node has this many items: the first of those that are not completed from the start get their jobs. */
export function expanded(
  node: number,
  count: number,
  { parallel }: PlannedItems,
  kept: readonly number[],
): ExecutionWrite[] {
  const expand: ExecutionWrite = { write: 'expand', node, count, kept }
  if (count === kept.length) return [expand, { write: 'gather', node }]
  const done = new Set(kept)
  const first: ExecutionWrite[] = []
  for (let item = 0; item < count && first.length < parallel; item++)
    if (!done.has(item)) first.push({ write: 'create_item', node, item, takesSlot: false })
  return [expand, ...first]
}

/** How an item has ended; `slotOf`: the model of the slot that is kept for the next one. */
interface ItemEnd {
  item: number
  status: 'completed' | 'failed'
  /** What it did until now. */
  before: OpenItem | undefined
  cost?: number | undefined
  slotOf?: string | undefined
}

/**
 * An item has ended and the node goes on: the next item gets its job, or all results are gathered. `isLast`: no further item
 * gets one.
 */
export function itemEnded(
  node: number,
  { item, status, before, cost = 0, slotOf }: ItemEnd,
  { planned, modelId, items, isLast }: { planned: PlannedItems; modelId: string; items: ItemsState; isLast: boolean },
): ExecutionWrite[] {
  const by: ItemCountChange = { [status]: 1, ...(cost > 0 ? { cost } : {}), ...leaving(before) }
  const end: ExecutionWrite = { write: 'item', node, item, status }
  const { next, count, open, stopped } = items
  if (isLast || next === count) {
    const isComplete = next === count && !stopped && open.size === 1
    return [end, countItems(node, by), ...(isComplete ? [{ write: 'gather' as const, node }] : [])]
  }
  const takesSlot = planned.direct && slotOf === modelId
  if (takesSlot) by.running = (by.running ?? 0) + 1
  return [end, countItems(node, by), { write: 'create_item', node, item: next, takesSlot }]
}

/** Whether a node whose list is known can neither complete nor wait for an item that runs, once no further item starts. */
export const isWithoutRunningItems = ({ count, next, open }: ItemsState): boolean =>
  (next < count || open.size > 0) && ![...open.values()].includes('running')

/** Whether the node ends with this item, and without a result, because no further item starts. */
export const endsStopped = ({ count, next, open, stopped }: ItemsState): boolean =>
  open.size === 1 && (stopped || next < count)

/** Cancels the items of a node that have not ended: all but one, or only those that do not run. */
export function withdrawItems(
  state: ExecutionState,
  node: number,
  { except, onlyIdle = false }: { except?: number; onlyIdle?: boolean } = {},
): ExecutionWrite[] {
  const items = state.items.get(node)
  if (!items) return []
  const writes: ExecutionWrite[] = []
  const by: Record<'running' | 'waiting', number> = { running: 0, waiting: 0 }
  for (const [item, status] of items.open) {
    if (item === except || (onlyIdle && status === 'running')) continue
    if (status !== 'ready') by[status]--
    writes.push({ write: 'item', node, item, status: 'cancelled' }, { write: 'withdraw_item', node, item })
  }
  return by.running < 0 || by.waiting < 0 ? [...writes, countItems(node, by)] : writes
}

/** What the end of an item changes in the count of those of its state. */
export const leaving = (status: OpenItem | undefined): ItemCountChange =>
  status === 'running' || status === 'waiting' ? { [status]: -1 } : {}

/** An item that has not ended waits from now on, or no longer. */
export function itemWaits(
  state: ExecutionState,
  { node, item, waits }: { node: number; item: number; waits: boolean },
): ExecutionWrite[] {
  const before = state.items.get(node)?.open.get(item)
  if (before === undefined || (before === 'waiting') === waits) return []
  const status = waits ? 'waiting' : 'ready'
  return [{ write: 'item', node, item, status }, countItems(node, { waiting: waits ? 1 : -1 })]
}

export const countItems = (node: number, by: ItemCountChange): ExecutionWrite => ({ write: 'count_items', node, by })
