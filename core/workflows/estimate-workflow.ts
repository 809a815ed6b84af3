import { setImmediate as nextIteration } from 'node:timers/promises'
import {
  type Dag,
  defaultMaxItems,
  defaultParallel,
  isPinned,
  type Parameters,
  type WorkflowNode,
} from '../dag/definition.ts'
import { Failure } from '../failure.ts'
import type { QueueForecast } from '../jobs/job-facts.ts'
import type { Model } from '../models/model.ts'
import { costOf, hasPrice } from '../models/price.ts'
import { noModelId } from '../schemas/task-table.ts'
import type { RecentRun } from '../store/store.ts'
import { needsModel, runsWorkflow, taskNamed } from '../tasks/registry.ts'
import type { TaskRecord } from '../tasks/task.ts'
import { inTimeSlices } from '../time-slice.ts'
import { bind, Unresolved } from './bind.ts'
import { type Estimate, estimateOf, type NodeOutlook } from './estimate.ts'
import { ranksOf } from './graph.ts'
import { absentParameters } from './parameters.ts'
import { dependencies } from './plan.ts'
import { ReferenceFault } from './references.ts'
import { type Selection, selectedPart } from './selection.ts'

export interface EstimateOptions {
  organizationId: string
  definition: { dag: Dag; parameters: Parameters | null }
  inputParams: Readonly<Record<string, unknown>>
  selection: Selection
}

/** Where the estimate reads what is known. */
export interface EstimateSources {
  recentRuns: (organizationId: string, work: { modelId: string; task: string }) => Promise<RecentRun[]>
  queueForecast: (modelId: string) => QueueForecast
  /** The model with this id or other name, if the caller may use it. */
  model: (name: string) => Model | undefined
}

/**
 * Estimates what an execution would cost and how long it would take: each of its nodes as if it ran once, without results
 * that are reused. Throws Failure `invalid_graph` for a graph with a cycle, and as `selectedPart` does.
 */
export async function estimateWorkflow(options: EstimateOptions, sources: EstimateSources): Promise<Estimate> {
  const { dag, parameters } = selectedPart(options.definition, options.selection)
  const running = Object.entries(dag.nodes).filter(([, node]) => !isPinned(node))
  const graph = dependencies({ nodes: Object.fromEntries(running), edges: dag.edges })
  if (!ranksOf(graph))
    throw new Failure('invalid_graph', 'The graph contains a cycle. Validate the workflow to find it.')
  const inputParams = withDefaults(options.inputParams, parameters)
  const works = running.map(([nodeId, node]) => workOf(nodeId, node, sources))
  const history = await historyOf(options.organizationId, works, sources)
  return estimateOf(graph, await inTimeSlices(outlooksOf(works, { history, inputParams, parameters, ...sources })))
}

/** A node, and the work that its runs are compared by; null without a model that the caller may use. */
interface Work {
  nodeId: string
  node: WorkflowNode
  record: TaskRecord | undefined
  model: Model | undefined
  modelId: string | null
  key: string
}

function workOf(nodeId: string, node: WorkflowNode, sources: EstimateSources): Work {
  const record = taskNamed(node.task)
  const model = node.model_id ? sources.model(node.model_id) : undefined
  const modelId = record && !needsModel(node.task) ? noModelId : (model?.id ?? null)
  return { nodeId, node, record, model, modelId, key: `${modelId} ${record?.id}` }
}

/** Whether the time of a node is that of its own work: what waits, or runs another workflow, takes as long as that. */
const worksItself = ({ record, modelId }: Work): boolean =>
  modelId === noModelId ? record?.runner === 'step' && !runsWorkflow(record) : modelId !== null

/** How many reads of the store follow each other without a pause: each takes some tens of microseconds. */
const readsAtOnce = 16

/** The recent runs of each work, by its key. */
async function historyOf(organizationId: string, works: readonly Work[], { recentRuns }: EstimateSources) {
  const history = new Map<string, readonly RecentRun[]>()
  for (const work of works) {
    const { key, record, modelId } = work
    if (!record || modelId === null || !worksItself(work) || history.has(key)) continue
    history.set(key, await recentRuns(organizationId, { modelId, task: record.id }))
    if (history.size % readsAtOnce === 0) await nextIteration()
  }
  return history
}

interface Known extends Pick<EstimateSources, 'queueForecast'> {
  history: ReadonlyMap<string, readonly RecentRun[]>
  inputParams: Readonly<Record<string, unknown>>
  parameters: Parameters | null
}

function* outlooksOf(works: readonly Work[], known: Known): Generator<void, NodeOutlook[]> {
  const outlooks: NodeOutlook[] = []
  for (const work of works) {
    const { nodeId, node, modelId, key } = work
    const forecast = modelId === null || !worksItself(work) ? undefined : known.queueForecast(modelId)
    outlooks.push({
      nodeId,
      modelId: modelId === noModelId ? null : (node.model_id ?? null),
      runs: known.history.get(key) ?? [],
      averageMs: forecast?.typicalMs ?? null,
      waitingMs: forecast?.etaMs ?? null,
      ...priced(work, known),
      items: itemsOf(node, known),
    })
    yield
  }
  return outlooks
}

function withDefaults(
  given: Readonly<Record<string, unknown>>,
  parameters: Parameters | null,
): Record<string, unknown> {
  const defaults = Object.entries(parameters ?? {}).filter(([, { default: value }]) => value !== undefined)
  return { ...Object.fromEntries(defaults.map(([name, parameter]) => [name, parameter.default])), ...given }
}

/** How often a node with a list runs; undefined for one without. Its number is known if the list is given. */
function itemsOf({ for_each: list, max_items, max_parallel }: WorkflowNode, { inputParams, parameters }: Known) {
  if (list === undefined) return undefined
  const known = knownInputs({ list }, inputParams, parameters)?.list
  return {
    count: Array.isArray(known) ? known.length : null,
    maximum: max_items ?? defaultMaxItems,
    parallel: max_parallel ?? defaultParallel,
  }
}

/** What the prices tell of a node. */
function priced(
  { node: { inputs }, record, model, modelId }: Work,
  { inputParams, parameters }: Known,
): Pick<NodeOutlook, 'free' | 'maxCost'> {
  if (record && modelId === noModelId && !runsWorkflow(record)) return { free: true, maxCost: 0 }
  if (!record || !model) return { free: false, maxCost: null }
  if (!hasPrice(model.price)) return { free: true, maxCost: 0 }
  const known = knownInputs(inputs, inputParams, parameters)
  // How long audio is, is known once it has been fetched.
  const ofAudio = record.takesFiles && record.metering.measures.includes('audioMs')
  if (known === undefined || ofAudio) return { free: false, maxCost: null }
  const length = JSON.stringify(known).length
  const { usage, image } = record.metering.estimate({
    inputs: known,
    length,
    contextLength: model.context_length ?? null,
  })
  return { free: false, maxCost: costOf(model.price, usage, image) }
}

/** The inputs of a node; undefined if they depend on results, or on parameters that are not given. */
function knownInputs(
  inputs: WorkflowNode['inputs'],
  given: Readonly<Record<string, unknown>>,
  parameters: Parameters | null,
): Record<string, unknown> | undefined {
  const optional = new Set(
    [...absentParameters(given, parameters)].filter(name => parameters![name]!.required === false),
  )
  try {
    const bound = bind(inputs, { input: given, nodes: {}, execution: {}, absent: optional })
    return bound as Record<string, unknown>
  } catch (thrown) {
    if (thrown instanceof Unresolved || thrown instanceof ReferenceFault) return undefined
    throw thrown
  }
}
