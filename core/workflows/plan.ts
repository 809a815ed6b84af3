import type { Dag, WorkflowNode } from '../dag/definition.ts'
import { newId } from '../ids.ts'
import type { NewExecutionNode } from '../store/workflows.ts'
import { taskNamed } from '../tasks/registry.ts'
import { type Graph, graphOf, impliedEdges, nodeReferences } from './graph.ts'

/** What must be done before what: what is drawn and what references imply. */
export function dependencies(dag: Dag): Graph {
  const drawn = graphOf(Object.keys(dag.nodes), dag.edges)
  return impliedEdges(drawn, nodeReferences(dag)).whole
}

/** The parameters that references name. */
export const usedParameters = (
  references: Iterable<{ root: string; path: readonly (string | number)[] }>,
): Set<string> => new Set([...references].flatMap(({ root, path }) => (root === 'input' ? [String(path[0])] : [])))

/** How often a node is tried where it does not say. */
const defaultRetries = 2

/**
 * The nodes of an execution, in the order of the definition. `reuse` gives the job whose result a node takes over.
 * The definition must have no blocking diagnostics.
 */
export function planOf(dag: Dag, reuse: ReadonlyMap<string, string> = new Map()): NewExecutionNode[] {
  const { successors, predecessors, nodes } = dependencies(dag)
  const numbers = new Map(nodes.map((node, at) => [node, at]))
  return nodes.map(nodeId => {
    const { task, model_id, on_error, retries, timeout } = dag.nodes[nodeId]!
    return {
      nodeId,
      task: taskNamed(task)!.id,
      modelId: model_id!,
      successors: successors.get(nodeId)!.map(after => numbers.get(after)!),
      predecessors: predecessors.get(nodeId)!.length,
      onError: on_error,
      direct: isItsOwn(dag.nodes[nodeId]!),
      maxAttempts: 1 + (retries?.max ?? defaultRetries),
      timeoutMs: timeout === undefined ? null : Math.round(timeout * 1000),
      jobId: newId('job'),
      reuses: reuse.get(nodeId) ?? null,
    }
  })
}

/** Whether it can be told beforehand that no result of another can serve it. */
function isItsOwn({ task, cache, inputs }: WorkflowNode): boolean {
  if (cache !== undefined) return cache !== 'use'
  // A seed or a temperature may come from a reference; then it is looked at when it is known.
  const { seed, temperature } = inputs
  const likely = {
    ...(typeof seed === 'string' ? { seed: 0 } : { seed }),
    ...(typeof temperature === 'string' ? { temperature: 0 } : { temperature }),
  }
  return !taskNamed(task)!.isRepeatable(likely)
}

/**
 * Of an execution that is to be done again: the nodes whose results stay. From `failed` all that are completed, from
 * `start` none, from a node all that are completed and do not come after it.
 */
export function reusable(
  dag: Dag,
  completed: ReadonlyMap<string, string>,
  from: 'failed' | 'start' | { node: string },
): Map<string, string> {
  if (from === 'start') return new Map()
  const { successors } = dependencies(dag)
  const again = new Set<string>()
  const open = from === 'failed' ? Object.keys(dag.nodes).filter(node => !completed.has(node)) : [from.node]
  for (let node = open.pop(); node !== undefined; node = open.pop())
    if (!again.has(node)) {
      again.add(node)
      open.push(...successors.get(node)!)
    }
  return new Map([...completed].filter(([node]) => !again.has(node)))
}
