import type { Store } from '../store/store.ts'
import type { ExecutionRecord, WorkflowDefinition } from '../store/workflows.ts'

/** What of an execution its nodes refer to. It never changes. */
export interface Frozen {
  id: string
  organizationId: string
  definition: WorkflowDefinition
  inputParams: Record<string, unknown>
  /** Epoch milliseconds. */
  createdAt: number
}

const mostKept = 256
/** Characters in all of them together: inputs may hold whole pictures. */
const mostText = 64 << 20

/** About how many characters the texts of a value have, and eight for anything else. */
function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (value === null || typeof value !== 'object') return 8
  let sum = 8
  for (const part of Object.values(value)) sum += lengthOf(part)
  return sum
}

/** Definitions of executions under way. One has up to thousands of nodes, and each node needs it when it starts. */
export function openFrozen(store: Pick<Store['executions'], 'find'>) {
  const kept = new Map<string, { frozen: Frozen; length: number }>()
  let text = 0

  function keep({ id, organizationId, definition, inputParams, createdAt }: Frozen | ExecutionRecord): Frozen {
    const frozen: Frozen = { id, organizationId, definition, inputParams, createdAt }
    const length = lengthOf(definition.dag.nodes) + lengthOf(inputParams)
    drop(id)
    kept.set(id, { frozen, length })
    text += length
    while (kept.size > 1 && (kept.size > mostKept || text > mostText)) drop(kept.keys().next().value!)
    return frozen
  }

  function drop(id: string): void {
    text -= kept.get(id)?.length ?? 0
    kept.delete(id)
  }

  return {
    keep,
    known: (id: string): Frozen | undefined => kept.get(id)?.frozen,
    /** Undefined: there is no such execution any more. */
    async of(organizationId: string, id: string): Promise<Frozen | undefined> {
      const known = kept.get(id)
      if (known) return known.frozen
      const execution = await store.find(organizationId, id)
      return execution && keep(execution)
    },
  }
}
export type FrozenExecutions = ReturnType<typeof openFrozen>
