import { type Admittance, admittanceOf } from '../../dag/admittance.ts'
import type { Concurrency } from '../../dag/concurrency.ts'
import { endlessWait, type UnfinishedExecutions } from '../../dag/endless-wait.ts'
import { conflict, Failure } from '../../failure.ts'
import type { NewExecution } from '../workflows.ts'
import { fromJson } from './columns.ts'
import type { Connection } from './database.ts'
import type { EachRow } from './give-up.ts'

/** How many waiting executions one commit starts at most, when a limit was raised: further ones start as those end. */
const maxStarted = 100

interface ExecutionKey {
  number: number
  id: string
}

/** Executions that wait because as many others of their workflow run as its `concurrency` allows. */
export function openExecutionQueue(
  connection: Connection,
  actions: {
    start: (number: number, at: number) => void
    cancel: (number: number, at: number) => void
    giveUp: (number: number, at: number) => void
    eachRow: EachRow
  },
) {
  const ofWorkflow = 'organization_id = ? AND workflow_id = ?'
  const concurrency = connection.scalar<string | null>`SELECT json_extract(definition, '$.concurrency')
    FROM workflows AS w JOIN workflow_versions AS v ON v.organization_id = w.organization_id AND v.workflow_id = w.id
    AND v.version = w.version WHERE w.organization_id = ? AND w.id = ?`
  const running = connection.scalar<number>`SELECT count(*) FROM executions INDEXED BY executions_running
    WHERE ${ofWorkflow} AND finished_at IS NULL AND queued = 0`
  const queued = connection.scalar<number>`SELECT count(*) FROM executions INDEXED BY executions_queued
    WHERE ${ofWorkflow} AND queued = 1`
  const next = connection.query<ExecutionKey>`SELECT number, id FROM executions INDEXED BY executions_queued
    WHERE ${ofWorkflow} AND queued = 1 ORDER BY priority DESC, number LIMIT ?`
  const oldest = connection.query<ExecutionKey>`SELECT number, id FROM executions INDEXED BY executions_running
    WHERE ${ofWorkflow} AND finished_at IS NULL AND queued = 0 ORDER BY number LIMIT ?`
  const started = connection.query<{ number: number }>`SELECT number FROM executions INDEXED BY executions_running
    WHERE ${ofWorkflow} AND finished_at IS NULL AND queued = 0`
  const nestedIn = connection.query<{
    number: number
    workflowId: string | null
    queued: number
  }>`SELECT number,
    workflow_id AS workflowId, queued FROM executions INDEXED BY executions_of_parent
    WHERE parent_execution = ? AND finished_at IS NULL`
  const nameOf = connection.scalar<string>`SELECT name FROM workflows WHERE organization_id = ? AND id = ?`
  const unqueue = connection.statement`UPDATE executions SET queued = 0, updated_at = ? WHERE number = ?`

  /** The newest version decides, also for executions of earlier ones. */
  const concurrencyOf = (organizationId: string, workflowId: string): Concurrency | null =>
    fromJson<Concurrency>(concurrency.get(organizationId, workflowId) ?? null)

  function refusal({ how }: Admittance, { workflowId, definition }: NewExecution, limit: number): Failure | undefined {
    const which = `The workflow '${definition.name}'`
    const most = limit === 1 ? 'one execution runs' : `${limit} executions run`
    const see = `GET /api/workflows/${workflowId}/executions lists them.`
    if (how === 'refuse')
      return conflict(
        `${which} refuses further executions while ${most}, the most that its 'concurrency' allows. Wait for the end of one, or cancel it: ${see}`,
      )
    if (how === 'queue_full')
      return new Failure(
        'queue_full',
        `${which} has as many waiting executions as one workflow may have. Send this one when some have ended: ${see}`,
      )
    return undefined
  }

  const unfinishedOf = (organizationId: string): UnfinishedExecutions => ({
    limitOf: workflowId => concurrencyOf(organizationId, workflowId)?.limit ?? null,
    startedOf: workflowId => started.all(organizationId, workflowId).map(({ number }) => number),
    nestedIn: number => nestedIn.all(number).map(one => ({ ...one, queued: one.queued === 1 })),
  })

  /** Why an execution must not wait: those for which it would wait do so for the ones around it. */
  function endless(organizationId: string, workflowId: string, around: readonly number[]): Failure | undefined {
    const awaited = endlessWait(workflowId, new Set(around), unfinishedOf(organizationId))
    if (!awaited) return undefined
    const others = [...new Set(awaited)].filter(id => id !== workflowId)
    const named = (id: string) => `'${nameOf.get(organizationId, id) ?? id}'`
    return conflict(
      `The workflow ${named(workflowId)} can never start here: its 'concurrency' allows no further execution, and those that run wait for one of ${others.map(named).join(' and ')}, which starts only when this one has ended. Raise 'concurrency' of one of them, or do not let them run each other.`,
    )
  }

  /** Those that wait end first, because they have done nothing yet. */
  function cancelOldest(organizationId: string, workflowId: string, count: number, at: number): void {
    const rows = [next, oldest].flatMap(query => query.all(organizationId, workflowId, count)).slice(0, count)
    for (const { number } of rows) actions.cancel(number, at)
  }

  return {
    /**
     * Whether a new execution starts or waits, or the Failure that refuses it. May cancel older executions. `around`: the
     * executions around a nested one.
     */
    admit(execution: NewExecution, around: readonly number[] = []): 'start' | 'queue' | Failure {
      const { organizationId, workflowId, createdAt: at } = execution
      const settings = workflowId === null ? null : concurrencyOf(organizationId, workflowId)
      if (!settings) return 'start'
      const counts = {
        running: running.get(organizationId, workflowId)!,
        queued: queued.get(organizationId, workflowId)!,
      }
      const admittance = admittanceOf(settings, counts)
      if (admittance.how === 'start') {
        if (admittance.cancel > 0) cancelOldest(organizationId, workflowId!, admittance.cancel, at)
        return 'start'
      }
      const refused = refusal(admittance, execution, settings.limit)
      if (refused || around.length === 0) return refused ?? 'queue'
      return endless(organizationId, workflowId!, around) ?? 'queue'
    },

    /** Starts the executions of a workflow that may run now. Call it when one has ended, or the workflow has changed. */
    startNext(organizationId: string, workflowId: string | null, at: number): void {
      if (workflowId === null || next.get(organizationId, workflowId, 1) === undefined) return
      const settings = concurrencyOf(organizationId, workflowId)
      const free = settings ? settings.limit - running.get(organizationId, workflowId)! : maxStarted
      if (free <= 0) return
      actions.eachRow(
        next.all(organizationId, workflowId, Math.min(free, maxStarted)),
        ({ number }) => {
          unqueue.run(at, number)
          actions.start(number, at)
        },
        ({ number }) => actions.giveUp(number, at),
      )
    },
  }
}
export type ExecutionQueue = ReturnType<typeof openExecutionQueue>
