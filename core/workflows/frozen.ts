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

/** Definitions of executions under way. One has up to thousands of nodes, and each node needs it when it starts. */
export function openFrozen(store: Pick<Store['executions'], 'find'>) {
  const kept = new Map<string, Frozen>()

  function keep({ id, organizationId, definition, inputParams, createdAt }: Frozen | ExecutionRecord): Frozen {
    const frozen: Frozen = { id, organizationId, definition, inputParams, createdAt }
    kept.delete(id)
    kept.set(id, frozen)
    if (kept.size > mostKept) kept.delete(kept.keys().next().value!)
    return frozen
  }

  return {
    keep,
    known: (id: string): Frozen | undefined => kept.get(id),
    /** Undefined: there is no such execution any more. */
    async of(organizationId: string, id: string): Promise<Frozen | undefined> {
      const known = kept.get(id)
      if (known) return known
      const execution = await store.find(organizationId, id)
      return execution && keep(execution)
    },
  }
}
export type FrozenExecutions = ReturnType<typeof openFrozen>
