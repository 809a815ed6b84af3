import { type Dag, isPinned, type Parameters, type WorkflowNode } from '../dag/definition.ts'
import { invalid } from '../failure.ts'
import { referencesOfNode } from './bind.ts'
import { suggested } from './diagnostics.ts'
import { dependencies, usedParameters } from './plan.ts'

/** Which nodes of a definition an execution runs, and which have a given result instead. */
export interface Selection {
  /** Exactly these nodes. Other nodes that they refer to need a pin. */
  only?: readonly string[] | undefined
  /** This node and those before it, except those that only pinned nodes need. */
  to?: string | undefined
  /** Results by node; null: the node runs although its definition has a pin. */
  pins?: Readonly<Record<string, unknown>> | undefined
  /** Whether pins of the definition count. */
  usePins?: boolean | undefined
}

/** The part of a definition that an execution runs. */
export interface SelectedPart {
  /** The nodes that run, and the pinned ones that they need. A pin in it counts. */
  dag: Dag
  /** Without those that no node of it uses; null if none are declared. */
  parameters: Parameters | null
  /** The names of the parameters that the part does not use. */
  unused: ReadonlySet<string>
}

/** The nodes of an execution that run. */
export const runningNodes = ({ nodes }: Dag): WorkflowNode[] => Object.values(nodes).filter(node => !isPinned(node))

/**
 * Returns the part of a definition that a selection runs. Pins of the definition are left out unless they count, and so
 * are those of the nodes that are selected by name. Throws Failure `not_found` for an unknown node, and `invalid_value`
 * for a selection that contradicts itself or lacks a result.
 */
export function selectedPart(
  definition: { dag: Dag; parameters: Parameters | null },
  selection: Selection,
): SelectedPart {
  const { dag, parameters } = definition
  const { only, to } = selection
  const pins = pinsOf(dag, selection)
  const chosen = only ? neededByOnly(dag, only, pins) : to === undefined ? undefined : neededBefore(dag, to, pins)
  const isChosen = (id: string) => chosen === undefined || chosen.has(id)
  const nodes = Object.fromEntries(
    Object.entries(dag.nodes).flatMap(([id, node]) => (isChosen(id) ? [[id, withPin(node, pins.get(id))]] : [])),
  )
  const edges = chosen ? dag.edges.filter(({ from, to: next }) => chosen.has(from) && chosen.has(next)) : dag.edges
  const part = { nodes, edges }
  if (chosen === undefined && pins.size === 0) return { dag: part, parameters, unused: new Set() }
  const used = parametersOf(runningNodes(part))
  const known = new Set([...parametersOf(Object.values(dag.nodes)), ...Object.keys(parameters ?? {})])
  return {
    dag: part,
    parameters: parameters && Object.fromEntries(Object.entries(parameters).filter(([name]) => used.has(name))),
    unused: new Set([...known].filter(name => !used.has(name))),
  }
}

/** The parameters that nodes refer to. */
const parametersOf = (nodes: readonly WorkflowNode[]): Set<string> =>
  usedParameters(
    nodes.flatMap(node => referencesOfNode(node).flatMap(({ reference }) => ('root' in reference ? [reference] : []))),
  )

/** The pins that count, by node. */
function pinsOf(dag: Dag, { only = [], to, pins = {}, usePins = false }: Selection): Map<string, unknown> {
  if (only.length > 0 && to !== undefined) throw invalid('to', "'only' and 'to' exclude each other. Send one of them.")
  only.forEach((id, at) => requireNode(dag, id, `only[${at}]`))
  if (to !== undefined) requireNode(dag, to, 'to')
  const counting = new Map<string, unknown>()
  const named = new Set(to === undefined ? only : [to])
  if (usePins)
    for (const [id, node] of Object.entries(dag.nodes)) if (isPinned(node) && !named.has(id)) counting.set(id, node.pin)
  for (const [id, pin] of Object.entries(pins)) {
    requireNode(dag, id, `pins.${id}`)
    if (pin === null) counting.delete(id)
    else if (named.has(id))
      throw invalid(
        `pins.${id}`,
        `The node '${id}' cannot both run and be pinned. Leave out its pin, or do not select it.`,
      )
    else counting.set(id, pin)
  }
  return counting
}

function requireNode({ nodes }: Dag, id: string, path: string): void {
  if (Object.hasOwn(nodes, id)) return
  const { suggestion } = suggested(id, Object.keys(nodes))
  const meant = suggestion === undefined ? '' : ` Did you mean '${suggestion}'?`
  throw invalid(path, `The workflow has no node '${id.slice(0, 64)}'.${meant}`, 'not_found')
}

/** The nodes of `only`, and the pinned ones to which they refer. */
function neededByOnly(dag: Dag, only: readonly string[], pins: ReadonlyMap<string, unknown>): Set<string> {
  const needed = new Set(only)
  for (const id of only)
    for (const { reference } of referencesOfNode(dag.nodes[id]!)) {
      if (!('root' in reference) || reference.root !== 'nodes') continue
      const before = String(reference.path[0])
      // What is no node is reported with the other findings.
      if (needed.has(before) || !Object.hasOwn(dag.nodes, before)) continue
      if (!pins.has(before))
        throw invalid(
          'only',
          `The node '${id}' needs the result of '${before}'. Pin that result, run '${before}' too, or run to '${id}' instead of only it.`,
        )
      needed.add(before)
    }
  return needed
}

/** The node and those before it. What comes before a pinned node is not needed for that node. */
function neededBefore(dag: Dag, to: string, pins: ReadonlyMap<string, unknown>): Set<string> {
  const { predecessors } = dependencies(dag)
  const needed = new Set<string>([to])
  const open = [to]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (pins.has(id)) continue
    for (const before of predecessors.get(id)!) if (!needed.has(before)) open.push((needed.add(before), before))
  }
  return needed
}

function withPin(node: WorkflowNode, pin: unknown): WorkflowNode {
  if (pin === node.pin) return node
  const { pin: _, ...without } = node
  return pin === undefined ? without : { ...without, pin }
}
