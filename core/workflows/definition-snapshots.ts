import type { Store } from '../store/store.ts'
import type { ExecutionRecord, NodeResult, WorkflowDefinition } from '../store/workflows.ts'

/** The parts of an execution that its nodes refer to. They never change. */
export interface DefinitionSnapshot {
  id: string
  organizationId: string
  definition: WorkflowDefinition
  inputParams: Record<string, unknown>
  /** What this server's own URLs in its inputs begin with. */
  origin: string
  /** Epoch milliseconds. */
  createdAt: number
}

const maxKept = 256
/** Characters of all of them together: inputs may contain whole images. */
const maxText = 64 << 20
/** Longer results are read from the store when needed, in characters. */
const maxResultLength = 1 << 16

interface Entry {
  snapshot: DefinitionSnapshot
  /** JSON text by node id. */
  results: Map<string, string>
  length: number
}

/** Approximate number of characters in the texts of a value; any other value counts as eight. */
export function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (value === null || typeof value !== 'object') return 8
  let sum = 8
  for (const part of Object.values(value)) sum += lengthOf(part)
  return sum
}

/**
 * Caches the unchanging data of running executions, which every starting node needs: definitions of up to thousands of
 * nodes, and the results of their nodes.
 */
export function openDefinitionSnapshots(store: Pick<Store['executions'], 'find' | 'results'>) {
  const kept = new Map<string, Entry>()
  let text = 0

  function keep(execution: DefinitionSnapshot | ExecutionRecord): DefinitionSnapshot {
    const { id, organizationId, definition, inputParams, origin, createdAt } = execution
    const snapshot: DefinitionSnapshot = { id, organizationId, definition, inputParams, origin, createdAt }
    const length = lengthOf(definition.dag.nodes) + lengthOf(inputParams)
    drop(id)
    kept.set(id, { snapshot, results: new Map(), length })
    text += length
    shrink()
    return snapshot
  }

  function shrink(): void {
    while (kept.size > 1 && (kept.size > maxKept || text > maxText)) drop(kept.keys().next().value!)
  }

  function drop(id: string): void {
    text -= kept.get(id)?.length ?? 0
    kept.delete(id)
  }

  return {
    keep,
    /** Call it when the execution has ended: later reads are rare. */
    drop,
    known: (id: string): DefinitionSnapshot | undefined => kept.get(id)?.snapshot,
    /** Undefined: the execution no longer exists. */
    async of(organizationId: string, id: string): Promise<DefinitionSnapshot | undefined> {
      const known = kept.get(id)
      if (known) return known.snapshot
      const execution = await store.find(organizationId, id)
      return execution && keep(execution)
    },
    /** Call it after a node's completion is committed. */
    keepResult(id: string, nodeId: string, result: string): void {
      const entry = kept.get(id)
      if (!entry || result.length > maxResultLength || entry.results.has(nodeId)) return
      entry.results.set(nodeId, result)
      entry.length += result.length
      text += result.length
      shrink()
    },
    /** The status and result of these nodes; without nodes that have not ended. */
    async results(
      { id, organizationId }: DefinitionSnapshot,
      nodeIds: readonly string[],
    ): Promise<Record<string, NodeResult>> {
      const known = kept.get(id)?.results
      const found: Record<string, NodeResult> = {}
      const unknown: string[] = []
      for (const nodeId of nodeIds) {
        const result = known?.get(nodeId)
        if (result === undefined) unknown.push(nodeId)
        else found[nodeId] = { status: 'completed', result, error: null }
      }
      return unknown.length === 0 ? found : { ...found, ...(await store.results(organizationId, id, unknown)) }
    },
  }
}
export type DefinitionSnapshots = ReturnType<typeof openDefinitionSnapshots>
