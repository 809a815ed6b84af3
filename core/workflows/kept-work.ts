import { type Dag, isPinned } from '../dag/definition.ts'
import type { ExecutionNode } from '../store/workflows.ts'
import type { Graph } from './graph.ts'

/** Where a retry begins: at the nodes that have ended badly, at the start, or at a node. */
export type RetryFrom = 'failed' | 'start' | { node: string }

/** What a retry keeps of an ended execution. */
export interface KeptWork {
  /** By node, the job whose result it reuses. */
  reuse: ReadonlyMap<string, string>
  /** The nodes with `for_each` that run again only for those of their items that have not completed. */
  lists: ReadonlySet<string>
}
export const nothingKept: KeptWork = { reuse: new Map(), lists: new Set() }

/** A node of the ended execution. */
export type EndedNode = Pick<ExecutionNode, 'nodeId' | 'status' | 'jobId' | 'items'>

/**
 * What a retry of an ended execution keeps. From `failed`, all results of nodes that do not come after one that has ended
 * badly; from `start`, nothing; from a node, all of those that do not come after it; if that is undefined, as from `failed`, and
 * `changed` nodes run too, and what comes after them. Skipped nodes are looked at again, and nothing has come after them but
 * what runs without them. A list runs for what is left of its items if it is not changed, and the results before it are kept.
 */
export function keptWork(
  { nodes: definitions }: Pick<Dag, 'nodes'>,
  { successors, predecessors }: Pick<Graph, 'successors' | 'predecessors'>,
  ended: readonly EndedNode[],
  { from, changed = [] }: { from: RetryFrom | undefined; changed?: readonly string[] },
): KeptWork {
  if (from === 'start') return nothingKept
  const named = new Set(typeof from === 'object' ? [from.node] : from === undefined ? changed : [])
  const first = typeof from === 'object' ? [] : ended.filter(hasEndedBadly).map(({ nodeId }) => nodeId)
  const rerun = new Set<string>()
  const open = [...first, ...named]
  for (let node = open.pop(); node !== undefined; node = open.pop())
    if (!rerun.has(node)) {
      rerun.add(node)
      // A pinned node has its result whatever comes before it.
      open.push(...successors.get(node)!.filter(after => !isPinned(definitions[after]!)))
    }
  const reuse = new Map<string, string>()
  const left: string[] = []
  for (const { nodeId, status, jobId, items } of ended)
    if (status === 'completed' && !rerun.has(nodeId)) {
      // A pinned one has no job.
      if (jobId !== null) reuse.set(nodeId, jobId)
    } else if (items !== null && items.completed > 0 && !named.has(nodeId) && !changed.includes(nodeId))
      left.push(nodeId)
  // With another result before it, its items may be others.
  const isKept = (node: string) => reuse.has(node) || (isPinned(definitions[node]!) && !rerun.has(node))
  const lists = new Set(left.filter(node => predecessors.get(node)!.every(isKept)))
  return { reuse, lists }
}

/** A list whose failed items were tolerated counts as such too, like a node whose failure was. */
const hasEndedBadly = ({ status, items }: EndedNode): boolean =>
  status === 'completed' ? items !== null && items.failed > 0 : status !== 'skipped'
