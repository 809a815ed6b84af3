import { Failure } from '../failure.ts'
import { newId } from '../ids.ts'
import { pick } from '../members.ts'
import type { Store } from '../store/store.ts'
import type { WorkflowDefinition, WorkflowRecord } from '../store/workflows.ts'
import type { Executions } from './executions.ts'

export interface WorkflowsOptions {
  store: Pick<Store, 'workflows'>
  executions: Pick<Executions, 'list' | 'cancel'>
  clock?: { now(): number }
}

/** How many executions are read at once. */
const pageSize = 100

/** Workflows: every change is a new version, and executions keep the version they started with. */
export function openWorkflows({ store: { workflows }, executions, clock = { now: Date.now } }: WorkflowsOptions) {
  /** Cancels every unfinished execution of the workflow. */
  async function cancelExecutions(organizationId: string, workflowId: string): Promise<void> {
    // The end of a running one may start one that waits for its place.
    for (const status of ['pending', 'running'] as const)
      for (let after: string | undefined, more = true; more; ) {
        const page = await executions.list(organizationId, {
          workflowId,
          status,
          limit: pageSize,
          ...(after === undefined ? {} : { after }),
        })
        for (const { id } of page.executions)
          await executions.cancel(organizationId, id).catch((thrown: unknown) => {
            if (Failure.from(thrown).code !== 'execution_already_finished') throw thrown
          })
        more = page.next !== null
        after = page.next ?? undefined
      }
  }

  return {
    create: (organizationId: string, definition: WorkflowDefinition): Promise<WorkflowRecord> =>
      workflows.create({ ...definition, id: newId('wf'), organizationId, createdAt: clock.now() }),

    ...pick(workflows, 'find', 'named', 'versions', 'list'),

    /**
     * Adds a version. Undefined: no such workflow. Throws Failure `conflict` if `expected` is not the current version.
     */
    update: (organizationId: string, id: string, change: Partial<WorkflowDefinition>, expected: number | undefined) =>
      workflows.update(organizationId, id, change, { expected, at: clock.now() }),

    /**
     * Removes the workflow; its executions stay. Throws Failure `conflict` while one of them is unfinished, unless
     * `cancel` is set: then they are cancelled first.
     */
    async remove(organizationId: string, id: string, { cancel }: { cancel: boolean }) {
      if (cancel) await cancelExecutions(organizationId, id)
      return workflows.remove(organizationId, id)
    },
  }
}
export type Workflows = ReturnType<typeof openWorkflows>
