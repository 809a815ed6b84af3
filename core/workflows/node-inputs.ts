import { canonicalHash } from '../canonical.ts'
import type { WorkflowNode } from '../dag/definition.ts'
import { Failure } from '../failure.ts'
import { linked } from '../files/links.ts'
import type { JobRecord } from '../store/store.ts'
import type { NodeResult } from '../store/workflows.ts'
import type { GenerationResult } from '../tasks/generation/result.ts'
import { isGeneration } from '../tasks/tasks.ts'
import { bind, referencesIn, Unresolved } from './bind.ts'
import type { Frozen, FrozenExecutions } from './frozen.ts'
import { ReferenceFault } from './references.ts'

/** A node and what its inputs come to. */
export interface BoundNode {
  node: WorkflowNode
  inputs: Record<string, unknown>
}

/**
 * What the inputs of a node come to, from the parameters and the results of the nodes before it. Files are referred to
 * by their ids: an address ends, and begins with where somebody reads it. Throws Failure `unresolved_reference` for a
 * reference that points at nothing, `invalid_value` for one that cannot be read.
 */
export async function boundInputs(
  frozen: Frozen,
  nodeId: string,
  results: FrozenExecutions['results'],
): Promise<BoundNode> {
  const { definition, inputParams, id, createdAt } = frozen
  const node = definition.dag.nodes[nodeId]!
  const references = referencesIn(node.inputs)
  const needed = references.flatMap(({ reference }) =>
    'root' in reference && reference.root === 'nodes' ? [String(reference.path[0])] : [],
  )
  const ended = needed.length === 0 ? {} : await results(frozen, [...new Set(needed)])
  const nodes = Object.fromEntries(
    Object.entries(ended).map(([name, result]) => [name, valueOf(definition.dag.nodes[name]!, result)]),
  )
  try {
    const execution = { id, created_at: Math.floor(createdAt / 1000) }
    const bound = bind(node.inputs, { input: inputParams, nodes, execution }) as Record<string, unknown>
    return { node, inputs: withAddresses(bound) }
  } catch (thrown) {
    if (thrown instanceof Unresolved) throw new Failure('unresolved_reference', thrown.message)
    if (thrown instanceof ReferenceFault) throw new Failure('invalid_value', thrown.message)
    throw thrown
  }
}

/** What references to a node see. */
function valueOf({ task, on_error }: WorkflowNode, { status, result, error }: NodeResult): object | null {
  if (status !== 'completed') return on_error === 'continue' ? null : { status, error }
  const stored = result === null ? null : (JSON.parse(result) as unknown)
  const shown = isGeneration(task as JobRecord['task']) ? linked(stored as GenerationResult, ({ id }) => id) : stored
  return { status, error: null, result: shown, outputs: shown }
}

const mediaField = /^(image|mask|video|audio)(_url)?$/

/** Where the address of a file belongs and an object with one stands, or a list of such, its address is taken. */
const withAddresses = (inputs: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, value]) => [name, mediaField.test(name) ? addressOf(value) : value]),
  )

function addressOf(value: unknown): unknown {
  const first: unknown = Array.isArray(value) ? value[0] : value
  if (first === null || typeof first !== 'object' || !('url' in first)) return value
  return typeof first.url === 'string' ? first.url : value
}

const alike: ReadonlySet<string> = new Set(['std/embeddings', 'std/rerank', 'std/score'])

/** Whether the same inputs give the same result, so that it need not be made twice. */
export function isRepeatable(task: string, inputs: Record<string, unknown>): boolean {
  if (alike.has(task)) return true
  return typeof inputs.seed === 'number' || inputs.temperature === 0
}

/** Whether a node's result may be taken from one like it, and whether it may serve others. */
export function cacheUse(
  node: WorkflowNode,
  task: string,
  inputs: Record<string, unknown>,
): { read: boolean; write: boolean } {
  const wish = node.cache ?? (isRepeatable(task, inputs) ? 'use' : 'off')
  return { read: wish === 'use', write: wish !== 'off' }
}

/** The same organization, task, model and inputs have the same key. `model` is all of its configuration that counts. */
export const cacheKeyOf = (organizationId: string, task: string, model: unknown, inputs: unknown): string =>
  canonicalHash([organizationId, task, model, inputs])
