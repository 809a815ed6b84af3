import type { JobError } from '../store.ts'
import { openAudit } from './audit.ts'
import { openBatchFlow } from './batches.ts'
import { openCommitEffects } from './commit-effects.ts'
import type { Connection } from './database.ts'
import { openEvents, type RetriedJob } from './events.ts'
import { changeOf, type ExecutionFlow, openExecutionCounts, openExecutionFlow } from './execution-flow.ts'
import { type ExecutionQueue, openExecutionQueue } from './execution-queue.ts'
import { openFileRows } from './files.ts'
import { openGiveUp } from './give-up.ts'
import type { TransactionMemory } from './group.ts'
import { openIdempotencyKeys } from './idempotency-keys.ts'
import { openItemCounts } from './item-flow.ts'
import { openJobCounts } from './job-counts.ts'
import { openEnd } from './job-end.ts'
import { openForget } from './job-forget.ts'
import { openLedger } from './ledger.ts'
import { openOrganizationUse } from './organization-use.ts'
import { openRecentRuns } from './recent-runs.ts'
import { openSpendRows } from './spend.ts'
import { openUsageTotals } from './usage-totals.ts'
import { openWebhookOutbox } from './webhook-outbox.ts'

/** What the writer's commands share on one connection: state in memory, and the writers of rows of more than one. */
function openShared(connection: Connection, boot: string) {
  const effects = openCommitEffects()
  const outbox = openWebhookOutbox(connection, effects)
  const events = openEvents(connection, outbox, effects)
  const spend = openSpendRows(connection, events)
  const totals = openUsageTotals(connection, spent => spend.billed(spent))
  const recentRuns = openRecentRuns(connection)
  const jobCounts = openJobCounts(connection)
  return {
    boot,
    totals,
    recentRuns,
    spend,
    ledger: openLedger(connection, totals, recentRuns),
    jobCounts,
    use: openOrganizationUse(connection, jobCounts),
    counts: openExecutionCounts(connection),
    itemCounts: openItemCounts(connection),
    events,
    effects,
    outbox,
    batches: openBatchFlow(connection, { events, effects }),
    audit: openAudit(connection),
    files: openFileRows(connection),
    keys: openIdempotencyKeys(connection),
  }
}
export type SharedContext = ReturnType<typeof openShared>

/** The same with what moves executions, and ends and deletes jobs. */
export interface WriteContext extends SharedContext, ReturnType<typeof openGiveUp> {
  flow: ExecutionFlow
  queue: ExecutionQueue
  endJob: ReturnType<typeof openEnd>
  forgetJob: ReturnType<typeof openForget>
  /** Records that a job waits again. `error`: why its attempt failed; null if the attempt was given back. */
  requeued: (job: RetriedJob, at: number, error: JobError | null) => void
}

export function openWriteContext(connection: Connection, boot: string): WriteContext {
  const shared = openShared(connection, boot)
  const startNext = (ended: { organizationId: string; workflowId: string | null }, at: number) =>
    queue.startNext(ended.organizationId, ended.workflowId, at)
  const flow = openExecutionFlow(connection, shared, startNext)
  const endJob = openEnd(connection, { ...shared, flow })
  const endAlone = openEnd(connection, { ...shared, flow: { ...flow, load() {}, advance() {} } })
  const memory = memoryOf({ ...shared, flow })
  const giveUp = openGiveUp(connection, shared, { memory, endJob, endAlone, executionEnded: startNext })
  const queue = openExecutionQueue(connection, {
    start: (number, at) => flow.advance(number, { type: 'dequeued', at }),
    cancel: (number, at) => flow.advance(number, { type: 'cancelled', at }),
    giveUp: giveUp.giveUpExecution,
    eachRow: giveUp.eachRow,
  })
  return {
    ...shared,
    ...giveUp,
    flow,
    queue,
    endJob,
    forgetJob: openForget(connection, shared),
    requeued(job, at, error) {
      const { execution, node } = job
      shared.events.addRetry(job, at, error)
      if (execution !== null && node !== null) flow.advance(execution, { ...changeOf(job, 'requeued'), at })
    },
  }
}

/** The part of it that is reverted with a transaction. */
export function memoryOf(context: SharedContext & Pick<WriteContext, 'flow'>): TransactionMemory {
  const { ledger, totals, recentRuns, jobCounts, counts, itemCounts, spend, events, effects, outbox, flow, keys } =
    context
  // In the order in which they are written: sums of usage add to what is spent, and that adds events.
  const owners: (Pick<TransactionMemory, 'forget'> & Partial<TransactionMemory>)[] = [
    ledger,
    totals,
    recentRuns,
    jobCounts,
    counts,
    itemCounts,
    spend,
    events,
    effects,
    outbox,
    flow,
    keys,
  ]
  return {
    begin() {
      jobCounts.begin()
      keys.begin()
    },
    mark() {
      const undo = owners.map(owner => owner.mark?.() ?? (() => owner.forget()))
      return () => {
        for (const revert of undo) revert()
      }
    },
    write() {
      for (const owner of owners) owner.write?.()
    },
    forget() {
      for (const owner of owners) owner.forget()
    },
  }
}
