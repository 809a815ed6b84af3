import { defaultMaxItems, type WorkflowNode } from '../dag/definition.ts'
import { Failure } from '../failure.ts'
import { jsonType } from '../schemas/schema-walk.ts'
import type { JobRecord, LargeResult } from '../store/store.ts'
import { bind, referencesIn, resolve } from './bind.ts'
import { type DefinitionSnapshot, type DefinitionSnapshots, lengthOf } from './definition-snapshots.ts'
import { bindFailure, bindingsOf } from './node-bindings.ts'
import type { BoundItem } from './node-inputs.ts'
import { isOfResult, type Reference, ReferenceFault } from './references.ts'
import type { ResultLookup } from './result-lookup.ts'
import type { ListSlice } from './result-work.ts'

/** The list of a node with `for_each`. */
interface ItemList {
  count: number
  item(index: number): unknown
  /** Approximate number of characters that it keeps in memory. */
  length: number
}

/** How many lists are kept, and how many characters of all of them together. */
const maxKept = 256
const maxText = 32 << 20

/**
 * The lists of nodes with `for_each`, bound once and kept for the items that follow. Results never change, so a dropped
 * list is bound again. Large lists stay in their files, and are read in slices.
 */
export function openItemLists({
  snapshots,
  cpu,
}: {
  snapshots: Pick<DefinitionSnapshots, 'results'>
  cpu: Pick<ResultLookup, 'referred' | 'listed'>
}) {
  const kept = new Map<string, Promise<ItemList>>()
  const lengths = new Map<string, number>()
  let text = 0

  const keyOf = (executionId: string, nodeId: string): string => `${executionId} ${nodeId}`

  function drop(key: string): void {
    text -= lengths.get(key) ?? 0
    lengths.delete(key)
    kept.delete(key)
  }

  function listOf(snapshot: DefinitionSnapshot, nodeId: string): Promise<ItemList> {
    const key = keyOf(snapshot.id, nodeId)
    const known = kept.get(key)
    if (known) return known
    const list = read(snapshot, nodeId)
    kept.set(key, list)
    list.then(
      ({ length }) => {
        if (kept.get(key) !== list) return
        lengths.set(key, length)
        text += length
        while (kept.size > 1 && (kept.size > maxKept || text > maxText)) drop(kept.keys().next().value!)
      },
      () => drop(key),
    )
    return list
  }

  async function read(snapshot: DefinitionSnapshot, nodeId: string): Promise<ItemList> {
    const node = snapshot.definition.dag.nodes[nodeId]!
    try {
      const large = await largeList(snapshot, node)
      const list = large ?? listIn(await boundList(snapshot, node), nodeId)
      const { max_items = defaultMaxItems } = node
      if (list.count <= max_items) return list
      throw new Failure(
        'invalid_value',
        `The list of node '${nodeId}' has ${list.count} items, and its 'max_items' allows ${max_items}. Raise 'max_items', 10000 at most, or send a shorter list.`,
      )
    } catch (thrown) {
      throw bindFailure(thrown, nodeId)
    }
  }

  async function boundList(snapshot: DefinitionSnapshot, node: WorkflowNode): Promise<unknown> {
    const bindings = await bindingsOf(snapshot, node, referencesIn(node.for_each, 'for_each'), { snapshots, cpu })
    const reference = wholeReference(node)
    // Nothing changes it, so it is not copied.
    return reference ? resolve(reference, bindings) : bind(node.for_each, bindings)
  }

  /** The list of a node that refers to a part of a large result; undefined if it does not. */
  async function largeList(snapshot: DefinitionSnapshot, node: WorkflowNode): Promise<ItemList | undefined> {
    const reference = wholeReference(node)
    if (reference?.root !== 'nodes' || !isOfResult(reference.path)) return undefined
    const target = String(reference.path[0])
    const { result, status } = (await snapshots.results(snapshot, [target]))[target] ?? {}
    if (status !== 'completed' || typeof result !== 'object' || result === null) return undefined
    const task = snapshot.definition.dag.nodes[target]!.task as JobRecord['task']
    return slicedList(from =>
      cpu.listed(result satisfies LargeResult, target, { source: reference.source, from }, task),
    )
  }

  return {
    /** How many items a node has. Throws Failure if its list cannot be bound, is none, or is too long. */
    count: async (snapshot: DefinitionSnapshot, nodeId: string): Promise<number> =>
      (await listOf(snapshot, nodeId)).count,
    /** One item of a node. Throws as `count`. */
    async item(snapshot: DefinitionSnapshot, nodeId: string, index: number): Promise<BoundItem> {
      const list = await listOf(snapshot, nodeId)
      return { item: await list.item(index), index }
    },
    /** Call it when the node has ended. */
    drop: (executionId: string, nodeId: string): void => drop(keyOf(executionId, nodeId)),
  }
}

/** The reference that is the whole list of a node. */
function wholeReference({ for_each }: WorkflowNode): Reference | undefined {
  if (typeof for_each !== 'string') return undefined
  const [found] = referencesIn(for_each, 'for_each')
  return found?.whole && !(found.reference instanceof ReferenceFault) ? found.reference : undefined
}

function listIn(value: unknown, nodeId: string): ItemList {
  if (!Array.isArray(value))
    throw new Failure(
      'invalid_value',
      `The 'for_each' of node '${nodeId}' is of type ${jsonType(value ?? null)}, not a list.`,
    )
  return { count: value.length, item: index => value[index] as unknown, length: lengthOf(value) }
}

/** A list of which one slice is in memory. */
async function slicedList(read: (from: number) => Promise<ListSlice>): Promise<ItemList> {
  const first = await read(0)
  let slice = Promise.resolve(first)
  return {
    count: first.count,
    async item(index) {
      // One after another: items are needed in order, and the first that is missing brings those after it.
      const next = () => read(index)
      slice = slice.then(now => (index >= now.from && index < now.from + now.items.length ? now : next()), next)
      const { from, items } = await slice
      return items[index - from]
    },
    length: 0,
  }
}
