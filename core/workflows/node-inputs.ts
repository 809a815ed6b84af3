import { canonicalHash } from '../canonical.ts'
import { ConditionFault, hasPattern, holds } from '../dag/condition.ts'
import { isPinned, type WorkflowNode } from '../dag/definition.ts'
import { Failure } from '../failure.ts'
import { loadPatterns } from '../pattern.ts'
import { maxSeparatorLength } from '../schemas/steps.ts'
import type { Task } from '../schemas/task.ts'
import type { JobRecord } from '../store/store.ts'
import type { NodeResult, WorkflowDefinition } from '../store/workflows.ts'
import { shownResult, taskNamed, taskRecord } from '../tasks/registry.ts'
import type { RunResult } from '../tasks/run-job.ts'
import { type Bindings, bind, type FoundReference, type LargeValue, referencesIn, Unresolved } from './bind.ts'
import type { DefinitionSnapshot, DefinitionSnapshots } from './definition-snapshots.ts'
import { defaultsOf } from './optional-results.ts'
import { absentParameters } from './parameters.ts'
import { isOfResult, ReferenceFault, type ReferenceStep } from './references.ts'
import type { ResultLookup } from './result-lookup.ts'

/** A node and its bound inputs. */
export interface BoundNode {
  node: WorkflowNode
  inputs: Record<string, unknown>
}

interface Sources {
  snapshots: Pick<DefinitionSnapshots, 'results'>
  cpu: Pick<ResultLookup, 'referred'>
  /** Whether lists of large results stay lists within a text. */
  keepLists?: boolean
}

/**
 * Binds the inputs of a node to the parameters and the results of the nodes before it; undefined if its condition is false.
 * Files are named by id, because a URL expires and begins with the host name of its reader. Throws Failure
 * `unresolved_reference` for a reference to something that does not exist, `invalid_value` for one with wrong syntax and
 * for a condition on a value that it cannot test.
 */
export async function bindNodeInputs(
  snapshot: DefinitionSnapshot,
  nodeId: string,
  sources: Sources,
): Promise<BoundNode | undefined> {
  const node = snapshot.definition.dag.nodes[nodeId]!
  const { when } = node
  try {
    if (when) {
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
      if (!holds(when, { read, find, pattern })) return undefined
    }
    const task = taskNamed(node.task)!
    const listSeparator = task.runner === 'step' ? task.listSeparator : undefined
    const keepLists = listSeparator !== undefined
    const bindings = await bindingsOf(snapshot, node, referencesIn(node.inputs), { ...sources, keepLists })
    const separator = listSeparator && bind(listSeparator(node.inputs), bindings)
    // A longer one is refused with the inputs, before anything is joined by it.
    const isShort = typeof separator === 'string' && separator.length <= maxSeparatorLength
    const bound = bind(node.inputs, { ...bindings, separator: isShort ? separator : undefined })
    return { node, inputs: withMediaAddresses(bound, task.isMediaPath) as Record<string, unknown> }
  } catch (thrown) {
    if (thrown instanceof Unresolved) throw new Failure('unresolved_reference', thrown.message)
    if (thrown instanceof ReferenceFault) throw new Failure('invalid_value', thrown.message)
    if (thrown instanceof ConditionFault)
      throw new Failure('invalid_value', `The condition of node '${nodeId}': ${thrown.message}`)
    throw thrown
  }
}

/** The values of the references of a node. */
async function bindingsOf(
  snapshot: DefinitionSnapshot,
  node: WorkflowNode,
  references: readonly FoundReference[],
  { snapshots, cpu, keepLists = false }: Sources,
): Promise<Bindings> {
  const { definition, inputParams, id, createdAt } = snapshot
  const needed = references.flatMap(({ reference }) =>
    'root' in reference && reference.root === 'nodes' ? [String(reference.path[0])] : [],
  )
  const nodes: Record<string, unknown> = {}
  const run = new Set<string>()
  for (const name of needed) {
    const { pin } = definition.dag.nodes[name]!
    if (isPinned({ pin })) nodes[name] = { status: 'completed', error: null, result: pin, outputs: pin }
    else run.add(name)
  }
  const ended = run.size === 0 ? {} : await snapshots.results(snapshot, [...run])
  const withoutResult = new Set<string>()
  for (const [name, result] of Object.entries(ended)) {
    const { task, on_error } = definition.dag.nodes[name]!
    nodes[name] = valueOf(task, result)
    if (result.status === 'skipped' || (result.status !== 'completed' && on_error === 'continue'))
      withoutResult.add(name)
  }
  return {
    input: inputParams,
    nodes,
    withoutResult,
    defaults: defaultsOf(node),
    execution: { id, created_at: Math.floor(createdAt / 1000) },
    absent: absentParameters(inputParams, definition.parameters),
    large: await largeValues(references, ended, definition.dag.nodes, cpu, keepLists),
  }
}

/** The value that references to a node read. */
function valueOf(task: string, { status, result, error }: NodeResult): object {
  // The parts of a large result are looked up in a thread.
  if (status !== 'completed' || (typeof result === 'object' && result !== null)) return { status, error }
  const stored = result === null ? null : (JSON.parse(result) as unknown)
  const shown = shownResult(task, stored, ({ id }) => id)
  return { status, error: null, result: shown, outputs: shown }
}

/**
 * The maximum size of a node's result, and of all values from large results that it refers to: bytes of JSON. Source: the
 * API contract, 2.8.
 */
export const maxNodeResultBytes = 16 << 20

/**
 * The values of references into large results, which a thread reads and searches. `keepLists`: also those within a text
 * as they are, not as text.
 */
async function largeValues(
  references: readonly FoundReference[],
  ended: Readonly<Record<string, NodeResult>>,
  nodes: WorkflowDefinition['dag']['nodes'],
  cpu: Pick<ResultLookup, 'referred'>,
  keepLists: boolean,
): Promise<Map<string, LargeValue> | undefined> {
  let large: Map<string, LargeValue> | undefined
  let sum = 0
  for (const [nodeId, { result }] of Object.entries(ended)) {
    if (result === null || typeof result === 'string') continue
    const wholeBySource = new Map<string, boolean>()
    for (const { reference, whole } of references)
      if (
        'root' in reference &&
        reference.root === 'nodes' &&
        String(reference.path[0]) === nodeId &&
        isOfResult(reference.path)
      )
        wholeBySource.set(reference.source, whole || keepLists || wholeBySource.get(reference.source) === true)
    if (wholeBySource.size === 0) continue
    const sources = [...wholeBySource].map(([source, whole]) => ({ source, whole }))
    const { found, bytes } = await cpu.referred(result, nodeId, sources, nodes[nodeId]!.task as JobRecord['task'])
    if ((sum += bytes) > maxNodeResultBytes)
      throw new Failure(
        'invalid_value',
        'The referenced values of this node are larger than 16 MiB. Refer to smaller parts.',
      )
    large ??= new Map()
    for (const [source, value] of found) large.set(source, value)
  }
  return large
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
