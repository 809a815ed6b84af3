import { ConditionFault } from '../dag/condition.ts'
import { isPinned, type WorkflowNode } from '../dag/definition.ts'
import { Failure } from '../failure.ts'
import type { JobRecord } from '../store/store.ts'
import type { NodeResult, WorkflowDefinition } from '../store/workflows.ts'
import { shownResult } from '../tasks/registry.ts'
import { type Bindings, type FoundReference, type LargeValue, Unresolved } from './bind.ts'
import type { DefinitionSnapshot, DefinitionSnapshots } from './definition-snapshots.ts'
import { defaultsOf } from './optional-results.ts'
import { absentParameters } from './parameters.ts'
import { isOfResult, ReferenceFault } from './references.ts'
import type { ResultLookup } from './result-lookup.ts'

/** Where the values of references come from. */
export interface Sources {
  snapshots: Pick<DefinitionSnapshots, 'results'>
  cpu: Pick<ResultLookup, 'referred'>
  /** Whether lists of large results stay lists within a text. */
  keepLists?: boolean
}

/**
 * The maximum size of a node's result, and of all values from large results that it refers to: bytes of JSON. Source: the
 * API contract, 2.8.
 */
export const maxNodeResultBytes = 16 << 20

/** The values of references of a node. */
export async function bindingsOf(
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

/** The failure of a node for what was thrown while its references were bound. */
export function bindFailure(thrown: unknown, nodeId: string): unknown {
  if (thrown instanceof Unresolved) return new Failure('unresolved_reference', thrown.message)
  if (thrown instanceof ReferenceFault) return new Failure('invalid_value', thrown.message)
  if (thrown instanceof ConditionFault)
    return new Failure('invalid_value', `The condition of node '${nodeId}': ${thrown.message}`)
  return thrown
}
