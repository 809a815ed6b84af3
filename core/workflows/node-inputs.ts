import { canonicalHash } from '../canonical.ts'
import { hasPattern, holds } from '../dag/condition.ts'
import type { WorkflowNode } from '../dag/definition.ts'
import { Failure } from '../failure.ts'
import { loadPatterns } from '../pattern.ts'
import { maxSeparatorLength } from '../schemas/steps.ts'
import type { Task } from '../schemas/task.ts'
import { taskNamed, taskRecord } from '../tasks/registry.ts'
import type { RunResult } from '../tasks/run-job.ts'
import { bind, referencesIn, Unresolved } from './bind.ts'
import type { DefinitionSnapshot } from './definition-snapshots.ts'
import { bindFailure, bindingsOf, maxNodeResultBytes, type Sources } from './node-bindings.ts'
import type { ReferenceStep } from './references.ts'

/** A node and its bound inputs. */
export interface BoundNode {
  node: WorkflowNode
  inputs: Record<string, unknown>
}

/** The item for which the inputs are bound: its value, and its position in the list. */
export interface BoundItem {
  item: unknown
  index: number
}

/**
 * Whether the condition of a node holds; a node without one always runs. Throws Failure `invalid_value` for a condition on
 * a value that it cannot test.
 */
export async function conditionHolds(snapshot: DefinitionSnapshot, nodeId: string, sources: Sources): Promise<boolean> {
  const node = snapshot.definition.dag.nodes[nodeId]!
  const { when } = node
  if (!when) return true
  try {
    const bindings = await bindingsOf(snapshot, node, referencesIn(when, 'when'), sources)
    const read = (value: unknown) => bind(value, bindings)
    const find = (value: unknown) => {
      try {
        return read(value)
      } catch (thrown) {
        if (thrown instanceof Unresolved) return undefined
        throw thrown
      }
    }
    const pattern = hasPattern(when) ? await loadPatterns() : undefined
    return holds(when, { read, find, pattern })
  } catch (thrown) {
    throw bindFailure(thrown, nodeId)
  }
}

/**
 * Binds the inputs of a node, or of one of its items, to the parameters and the results of the nodes before it. Files are
 * named by id, because a URL expires and begins with the host name of its reader. Throws Failure `unresolved_reference`
 * for a reference to something that does not exist, `invalid_value` for one with wrong syntax.
 */
export async function bindNodeInputs(
  snapshot: DefinitionSnapshot,
  nodeId: string,
  sources: Sources,
  item?: BoundItem,
): Promise<BoundNode> {
  const node = snapshot.definition.dag.nodes[nodeId]!
  try {
    const task = taskNamed(node.task)!
    const listSeparator = task.runner === 'step' ? task.listSeparator : undefined
    const keepLists = listSeparator !== undefined
    const found = await bindingsOf(snapshot, node, referencesIn(node.inputs), { ...sources, keepLists })
    const bindings = { ...found, ...item }
    const separator = listSeparator && bind(listSeparator(node.inputs), bindings)
    // A longer one is refused with the inputs, before anything is joined by it.
    const isShort = typeof separator === 'string' && separator.length <= maxSeparatorLength
    const bound = bind(node.inputs, { ...bindings, separator: isShort ? separator : undefined })
    return { node, inputs: withMediaAddresses(bound, task.isMediaPath) as Record<string, unknown> }
  } catch (thrown) {
    throw bindFailure(thrown, nodeId)
  }
}

/** The most values of inputs that are compared with those of earlier work: they are hashed on the event loop. */
const maxCachedValues = 50_000

/** Whether the inputs have too many values to look for a stored result of the same work. */
export function hasManyValues(inputs: unknown): boolean {
  let values = 0
  const visit = (value: unknown): boolean => {
    if (++values > maxCachedValues) return true
    return value !== null && typeof value === 'object' && Object.values(value).some(visit)
  }
  return visit(inputs)
}

/** Whether a node may reuse a stored result, and whether its own result may be reused. */
export function cacheUse(
  node: WorkflowNode,
  task: Task,
  inputs: Record<string, unknown>,
): { read: boolean; write: boolean } {
  const cacheMode = node.cache ?? (taskRecord(task).isRepeatable(inputs) ? 'use' : 'off')
  return { read: cacheMode === 'use', write: cacheMode !== 'off' }
}

/**
 * The key is the same for the same organization, task, model and inputs. `model` is the part of its configuration that
 * matters.
 */
export const cacheKeyOf = (organizationId: string, task: string, model: unknown, inputs: unknown): string =>
  canonicalHash([organizationId, task, model, inputs])

/** Returns inputs in which an object at a media path, or a list of such objects, is replaced by its URL. */
export function withMediaAddresses(
  value: unknown,
  isMediaPath: (path: readonly ReferenceStep[]) => boolean,
  at: readonly ReferenceStep[] = [],
): unknown {
  if (value === null || typeof value !== 'object') return value
  const address = isMediaPath(at) ? addressOf(value) : undefined
  if (address !== undefined) return address
  if (Array.isArray(value)) return value.map((part, index) => withMediaAddresses(part, isMediaPath, [...at, index]))
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, withMediaAddresses(part, isMediaPath, [...at, name])]),
  )
}

function addressOf(value: object): string | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value
  if (first === null || typeof first !== 'object') return undefined
  // A speech result has its file's URL in `audio_url`.
  const url = 'url' in first ? first.url : 'audio_url' in first ? first.audio_url : undefined
  return typeof url === 'string' ? url : undefined
}

/**
 * The failure for a result that is too large, or undefined. The same work would produce it again, so it is not retried.
 */
export function oversize(nodeId: string, result: RunResult['result']): Failure | undefined {
  const bytes = typeof result === 'string' ? Buffer.byteLength(result) : result.byteLength
  if (bytes <= maxNodeResultBytes) return undefined
  const size = (bytes / (1 << 20)).toFixed(1)
  return new Failure(
    'payload_too_large',
    `The result of node '${nodeId}' has ${size} MiB; the limit is 16 MiB. Split the work over several nodes.`,
  )
}
