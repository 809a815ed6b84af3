import type { Store } from '../store/store.ts'
import type { ExecutionRecord, NodeResult, WorkflowDefinition } from '../store/workflows.ts'

/** What of an execution its nodes refer to. It never changes. */
export interface DefinitionSnapshot {
  id: string
  organizationId: string
  definition: WorkflowDefinition
  inputParams: Record<string, unknown>
  /** What our own addresses begin with where they stand in its inputs. */
  origin: string
  /** Epoch milliseconds. */
  createdAt: number
}

const maxKept = 256
/** Characters in all of them together: inputs may hold whole pictures. */
const maxText = 64 << 20
/** A result that is longer is read when it is needed. */
const longestResult = 1 << 16

interface Entry {
  snapshot: DefinitionSnapshot
  /** JSON text by node id. */
  results: Map<string, string>
  length: number
}

/** About how many characters the texts of a value have, and eight for anything else. */
export function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (value === null || typeof value !== 'object') return 8
  let sum = 8
  for (const part of Object.values(value)) sum += lengthOf(part)
  return sum
}

/**
 * What of executions under way never changes, and is needed whenever a node of them starts: their definitions of up to
 * thousands of nodes, and what their nodes gave.
 */
export function openDefinitionSnapshots(store: Pick<Store['executions'], 'find' | 'results'>) {
  const kept = new Map<string, Entry>()
  let text = 0

  function keep({
    id,
    organizationId,
    definition,
    inputParams,
    origin,
    createdAt,
  }: DefinitionSnapshot | ExecutionRecord): DefinitionSnapshot {
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
    /** It has ended: what comes after that is asked for once, if at all. */
    drop,
    known: (id: string): DefinitionSnapshot | undefined => kept.get(id)?.snapshot,
    /** Undefined: there is no such execution any more. */
    async of(organizationId: string, id: string): Promise<DefinitionSnapshot | undefined> {
      const known = kept.get(id)
      if (known) return known.snapshot
      const execution = await store.find(organizationId, id)
      return execution && keep(execution)
    },
    /** A node has completed, and that is written. */
    keepResult(id: string, nodeId: string, result: string): void {
      const entry = kept.get(id)
      if (!entry || result.length > longestResult || entry.results.has(nodeId)) return
      entry.results.set(nodeId, result)
      entry.length += result.length
      text += result.length
      shrink()
    },
    /** How these nodes have ended, and what they gave. Those that have not are not among them. */
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
