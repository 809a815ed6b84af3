import { type Dag, defaultParallel, isPinned, type WorkflowNode } from '../dag/definition.ts'
import { newId } from '../ids.ts'
import { noModelId } from '../schemas/task-table.ts'
import type { NewExecutionNode } from '../store/workflows.ts'
import { needsModel, runsWorkflow, taskNamed } from '../tasks/registry.ts'
import { type Graph, graphOf, impliedEdges, nodeReferences } from './graph.ts'
import { type KeptWork, nothingKept } from './kept-work.ts'
import { optionalNodes } from './optional-results.ts'

/** The dependencies of the nodes: drawn edges and those that references imply. */
export function dependencies(dag: Dag): Graph {
  const drawn = graphOf(Object.keys(dag.nodes), dag.edges)
  return impliedEdges(drawn, nodeReferences(dag)).whole
}

/** The parameters that the references name. */
export const usedParameters = (
  references: Iterable<{ root: string; path: readonly (string | number)[] }>,
): Set<string> => new Set([...references].flatMap(({ root, path }) => (root === 'input' ? [String(path[0])] : [])))

/** How many retries a node has by default. */
const defaultRetries = 2

/**
 * The nodes of an execution, in the order of the definition, with what it keeps of the one that it retries. The definition
 * must have no blocking diagnostics.
 */
export function planNodes(dag: Dag, { reuse, lists }: KeptWork = nothingKept): NewExecutionNode[] {
  const { successors, predecessors, nodes } = dependencies(dag)
  const numbers = new Map(nodes.map((node, at) => [node, at]))
  return nodes.map(nodeId => {
    const { task, model_id, on_error, retries, timeout, join } = dag.nodes[nodeId]!
    const pinned = isPinned(dag.nodes[nodeId]!)
    const optional = optionalNodes(dag.nodes[nodeId]!)
    const items = plannedItems(dag.nodes[nodeId]!)
    return {
      nodeId,
      task: taskNamed(task)!.id,
      // A pinned node of a draft may have no model yet.
      modelId: needsModel(task) ? (model_id ?? noModelId) : noModelId,
      successors: successors.get(nodeId)!.map(after => numbers.get(after)!),
      predecessors: predecessors.get(nodeId)!.length,
      onError: on_error,
      ...(join === 'any' ? { join } : {}),
      ...(pinned ? { pinned } : {}),
      ...(optional.size > 0
        ? {
            optional: predecessors.get(nodeId)!.flatMap(before => (optional.has(before) ? [numbers.get(before)!] : [])),
          }
        : {}),
      ...(items ? { items } : {}),
      direct: !items && dag.nodes[nodeId]!.when === undefined && isQueuedAtOnce(dag.nodes[nodeId]!),
      maxAttempts: 1 + (retries?.max ?? defaultRetries),
      timeoutMs: timeout === undefined ? null : Math.max(1, Math.round(timeout * 1000)),
      jobId: newId('job'),
      reuses: reuse.get(nodeId) ?? null,
      ...(lists.has(nodeId) ? { keepsItems: true } : {}),
    }
  })
}

/** How the task of a node runs for the items of its list; undefined if it has none. */
const plannedItems = (node: WorkflowNode): NewExecutionNode['items'] =>
  node.for_each === undefined
    ? undefined
    : {
        parallel: node.max_parallel ?? defaultParallel,
        onError: node.on_item_error ?? 'fail',
        direct: isQueuedAtOnce(node),
      }

/** Whether it is certain in advance that the node runs its task and cannot use the cache. */
function isQueuedAtOnce({ task, cache, inputs }: WorkflowNode): boolean {
  const record = taskNamed(task)!
  if (runsWorkflow(record)) return false
  if (cache !== undefined) return cache !== 'use'
  // A seed or a temperature may come from a reference; then this is decided when its value is known.
  const { seed, temperature } = inputs
  const resolvedInputs = {
    ...(typeof seed === 'string' ? { seed: 0 } : { seed }),
    ...(typeof temperature === 'string' ? { temperature: 0 } : { temperature }),
  }
  return !record.isRepeatable(resolvedInputs)
}
