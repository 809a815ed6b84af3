import { hasPattern } from '../dag/condition.ts'
import { type Dag, isPinned, type Parameters } from '../dag/definition.ts'
import { loadPatterns } from '../pattern.ts'
import { inTimeSlices, runSteps } from '../time-slice.ts'
import { referencesOfNode } from './bind.ts'
import { uncertainNodes } from './diagnose-condition.ts'
import { type NestedWorkflow, nestedWorkflows } from './diagnose-nested.ts'
import { diagnoseNode, type NodeContext, type Offer } from './diagnose-node.ts'
import {
  type DiagnosticFinding,
  type Diagnostics,
  severityOf,
  suggested,
  type TypeIssue,
  type Warning,
} from './diagnostics.ts'
import { type Graph, graphOf, impliedEdges, nodeReferences, ranksOf, shortestCycle } from './graph.ts'
import { declarationFaults } from './parameters.ts'

/** Validates a definition, all but the patterns of its conditions and the workflows that it runs. Pure; reports all findings, in the order of the nodes. */
export function diagnose(dag: Dag, parameters: Parameters | undefined, offer: Offer): Diagnostics {
  return runSteps(diagnosis(dag, parameters, offer)).diagnostics
}

/** The same in time slices, of the definition of an execution: its pinned nodes do not run. */
export const diagnoseExecution = async (
  dag: Dag,
  parameters: Parameters | undefined,
  offer: Offer,
  self?: string,
): Promise<Diagnostics> => (await surveyInTimeSlices(dag, parameters, offer, { usesPins: true, self })).diagnostics

/** The findings, and the nodes in ranks that can run in parallel; `order` is undefined if the graph has a cycle. */
export interface Survey {
  diagnostics: Diagnostics
  order: readonly string[][] | undefined
}

/**
 * The validation in time slices, with the order of the nodes: a large definition takes many milliseconds. `usesPins`:
 * pinned nodes do not run, so that nothing else of them counts. `self`: the id of the workflow, if it is stored.
 */
export async function surveyInTimeSlices(
  dag: Dag,
  parameters: Parameters | undefined,
  offer: Offer,
  { usesPins = false, self }: { usesPins?: boolean; self?: string | undefined } = {},
): Promise<Survey> {
  const hasPatterns = Object.values(dag.nodes).some(({ when }) => when && hasPattern(when))
  const pattern = hasPatterns ? await loadPatterns() : undefined
  const nested = await nestedWorkflows(dag, offer, self)
  return inTimeSlices(diagnosis(dag, parameters, offer, { pattern, nested, usesPins }))
}

function* diagnosis(
  dag: Dag,
  parameters: Parameters | undefined,
  offer: Offer,
  {
    pattern,
    nested = new Map<string, NestedWorkflow>(),
    usesPins = false,
  }: Partial<Pick<NodeContext, 'nested' | 'usesPins'>> & { pattern?: NodeContext['pattern'] } = {},
): Generator<void, Survey> {
  const found: Diagnostics = { type_issues: [], warnings: [] }
  const warn = ({ code, ...more }: DiagnosticFinding<Warning>) =>
    void found.warnings.push({ code, severity: severityOf(code), ...withSuggestion(more) })
  const issue = ({ code, ...more }: DiagnosticFinding<TypeIssue>) =>
    void found.type_issues.push({ code, severity: severityOf(code), ...withSuggestion(more) })
  if (Object.keys(dag.nodes).length === 0) warn({ code: 'empty_graph', message: 'The workflow has no nodes.' })
  const { order, whole } = yield* diagnoseGraph(dag, usesPins, warn)
  const used = new Set<string>()
  const uncertain = uncertainNodes(dag.nodes, order, whole)
  const { predecessors } = whole
  const context = { dag, parameters, offer, used, uncertain, predecessors, pattern, nested, usesPins }
  for (const [id, node] of Object.entries(dag.nodes)) {
    yield* diagnoseNode(id, node, {
      ...context,
      warn: (code, message, facts) => warn({ code, message, node_id: id, ...facts }),
      issue: (code, message, facts) => issue({ code, message, node_id: id, ...facts }),
    })
    yield
  }
  for (const [name, parameter] of Object.entries(parameters ?? {})) {
    if (!used.has(name))
      warn({
        code: 'unused_parameter',
        message: `The parameter '${name}' is used by no node.`,
        path: `parameters.${name}`,
      })
    for (const fault of declarationFaults(name, parameter)) issue(fault)
  }
  return { diagnostics: found, order }
}

/** Appends the suggested name to the message of a finding. */
const withSuggestion = <F extends { message: string; suggestion?: string }>(found: F): F =>
  found.suggestion === undefined ? found : { ...found, message: `${found.message} Did you mean '${found.suggestion}'?` }

function* diagnoseGraph(
  dag: Dag,
  usesPins: boolean,
  warn: (warning: DiagnosticFinding<Warning>) => void,
): Generator<void, Pick<Survey, 'order'> & { whole: Graph }> {
  const drawn = graphOf(Object.keys(dag.nodes), dag.edges)
  yield
  // If the graph has all edges, no edge is wrong.
  let taken = 0
  for (const those of drawn.successors.values()) taken += those.length
  if (taken < dag.edges.length) diagnoseEdges(dag, warn)
  yield
  // Fills the cache of `referencesIn`, one node per step.
  for (const node of Object.values(dag.nodes)) {
    referencesOfNode(node)
    yield
  }
  const references = nodeReferences(dag)
  yield
  const { circular, whole } = impliedEdges(drawn, references)
  yield
  for (const { node, path, reference, target } of circular)
    if (!usesPins || !isPinned(dag.nodes[node]!))
      warn({
        code: 'reference_not_upstream',
        message: `\${${reference.source}}: node '${target}' runs after '${node}', so its result cannot be used there.`,
        node_id: node,
        path,
        reference: `\${${reference.source}}`,
      })
  const order = ranksOf(whole)
  const cycle = order ? undefined : shortestCycle(drawn)
  if (cycle) warn({ code: 'cycle', message: `The graph contains a cycle: ${cycle.join(' → ')}.`, nodes: cycle })
  return { order, whole }
}

function diagnoseEdges(dag: Dag, warn: (warning: DiagnosticFinding<Warning>) => void): void {
  const seen = new Set<string>()
  for (const edge of dag.edges) {
    const { from, to } = edge
    // Node names contain no line breaks.
    const key = `${from}\n${to}`
    const missing = [from, to].find(id => !Object.hasOwn(dag.nodes, id))
    if (missing !== undefined)
      warn({
        code: 'edge_unknown_node',
        message: `Edge ${from} → ${to} references a node that does not exist: '${missing}'.`,
        edge,
        ...suggested(missing, Object.keys(dag.nodes)),
      })
    else if (from === to)
      warn({ code: 'self_edge', message: `Node '${from}' has an edge to itself.`, node_id: from, edge })
    else if (seen.has(key)) warn({ code: 'duplicate_edge', message: `Edge ${from} → ${to} exists twice.`, edge })
    seen.add(key)
  }
}
