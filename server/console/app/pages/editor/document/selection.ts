import { parametersOfTaken, takenValuesOf, upstreamOf } from './references.ts'
import type { Parameter, Workflow, WorkflowNode } from './workflow-document.ts'

/** A part of a workflow to run: one node, or a node with those before it. */
export type Part = { only: string } | { to: string }

/** What a run does. */
interface Plan {
  /** The nodes that run. */
  runs: WorkflowNode[]
  /** Ids of the nodes whose pinned results are used. */
  pinned: string[]
  /** Ids of the nodes that do not run, and whose results are needed and not pinned. */
  missing: string[]
}

/** What a run of a workflow, or of a part of it, does with the pins of its nodes. */
export function planOf(workflow: Pick<Workflow, 'nodes' | 'edges'>, part: Part | undefined): Plan {
  const { nodes } = workflow
  const isPinned = (id: string) => nodes.some(node => node.id === id && node.pin !== undefined)
  if (!part) {
    const pinned = nodes.filter(({ pin }) => pin !== undefined)
    return { runs: nodes.filter(node => !pinned.includes(node)), pinned: pinned.map(({ id }) => id), missing: [] }
  }
  const named = 'only' in part ? part.only : part.to
  const ids = 'only' in part ? new Set([named]) : withoutPinned(workflow, named, isPinned)
  const runs = nodes.filter(({ id }) => ids.has(id))
  const needed = new Set(
    takenValuesOf({ nodes: runs }).flatMap(({ from }) => (from === undefined || ids.has(from) ? [] : [from])),
  )
  return {
    runs,
    pinned: [...needed].filter(isPinned),
    missing: [...needed].filter(id => !isPinned(id) && nodes.some(node => node.id === id)),
  }
}

/** A node and those before it, except those that only pinned nodes need. */
function withoutPinned(
  workflow: Pick<Workflow, 'nodes' | 'edges'>,
  id: string,
  isPinned: (id: string) => boolean,
): Set<string> {
  // What leads to a pinned node is no way from it.
  const open: Pick<Workflow, 'nodes' | 'edges'> = {
    nodes: workflow.nodes.filter(node => node.id === id || !isPinned(node.id)),
    edges: workflow.edges.filter(({ to }) => to === id || !isPinned(to)),
  }
  return new Set([id, ...[...upstreamOf(open, id)].filter(one => !isPinned(one))])
}

/** The parameters that a run takes: all that are declared, or those that the nodes of a part name; and undeclared ones. */
export function parametersFor(
  { nodes, parameters }: Pick<Workflow, 'nodes' | 'parameters'>,
  part: Part | undefined,
  { runs }: Pick<Plan, 'runs'>,
): Map<string, Parameter> {
  const used = parametersOfTaken(takenValuesOf({ nodes: part ? runs : nodes }))
  const declared = parameters.filter(({ name }) => !part || used.has(name))
  const found = new Map(declared.map(({ name, parameter }) => [name, parameter]))
  for (const name of used) if (!found.has(name)) found.set(name, { type: 'string' })
  return found
}
