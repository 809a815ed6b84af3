import { type Dag, isPinned, type WorkflowNode } from '../dag/definition.ts'
import { invalid } from '../failure.ts'
import { suggested } from './diagnostics.ts'
import { type EndedNode, type KeptWork, keptWork, type RetryFrom } from './kept-work.ts'
import { dependencies } from './plan.ts'

/** What a retry changes in a node. */
export interface NodeChange {
  /** Inputs to replace, by name; null removes one. The others stay. */
  inputs?: Readonly<Record<string, unknown>> | undefined
  model_id?: string | undefined
}

export interface RetryOptions {
  /** Undefined: from the nodes that have ended badly and from those that are changed. */
  from: RetryFrom | undefined
  /** Changes by node. */
  changes?: Readonly<Record<string, NodeChange>> | undefined
}

/**
 * What a retry of an ended execution runs: its graph with the changes, and what stays of the results. Pins stay
 * too, except those of the nodes from which it runs. Throws Failure `not_found` for an unknown node, and `conflict` for a
 * change of a node that keeps its result.
 */
export function planRetry(
  before: { id: string; dag: Dag; nodes: readonly EndedNode[] },
  { from, changes = {} }: RetryOptions,
): { dag: Dag; kept: KeptWork } {
  const { id, dag, nodes } = before
  const requireNode = (path: string, node: string) => {
    if (Object.hasOwn(dag.nodes, node)) return
    const { suggestion } = suggested(node, Object.keys(dag.nodes))
    const meant = suggestion === undefined ? '' : ` Did you mean '${suggestion}'?`
    throw invalid(path, `The execution ${id} has no node '${node.slice(0, 64)}'.${meant}`, 'not_found')
  }
  if (typeof from === 'object') requireNode('from', from.node)
  const changed = Object.keys(changes)
  for (const node of changed) requireNode(`changes.nodes.${node}`, node)
  const unpinned = new Set(typeof from === 'object' ? [from.node] : from === undefined ? changed : [])
  const next: Dag = {
    ...dag,
    nodes: Object.fromEntries(
      Object.entries(dag.nodes).map(([name, node]) => [name, nextNode(node, changes[name], unpinned.has(name))]),
    ),
  }
  const kept = keptWork(next, dependencies(next), nodes, { from, changed })
  for (const node of changed)
    if (kept.reuse.has(node) || isPinned(next.nodes[node]!))
      throw invalid(
        `changes.nodes.${node}`,
        `The node '${node}' keeps its result in this retry, so a change of it would have no effect. Leave out 'from', or begin at that node.`,
        'conflict',
      )
  return { dag: next, kept }
}

function nextNode(node: WorkflowNode, change: NodeChange | undefined, unpin: boolean): WorkflowNode {
  if (!change && !unpin) return node
  const { pin, ...without } = node
  const { inputs = {}, model_id = node.model_id } = change ?? {}
  const kept = Object.entries({ ...node.inputs, ...inputs }).filter(([name]) => inputs[name] !== null)
  return { ...without, ...(unpin ? {} : { pin }), inputs: Object.fromEntries(kept), model_id }
}
