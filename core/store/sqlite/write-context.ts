import { type BatchFlow, openBatchFlow } from './batch-flow.ts'
import { type GroupEffects, openCommitEffects } from './commit-effects.ts'
import type { Connection } from './database.ts'
import { type Events, openEvents } from './events.ts'
import { type ExecutionCounts, openExecutionCounts } from './execution-counts.ts'
import { type ExecutionFlow, openExecutionFlow } from './execution-flow.ts'
import type { TransactionMemory } from './group.ts'
import { type JobCounts, openJobCounts } from './job-counts.ts'
import { type Ledger, openLedger } from './ledger.ts'
import { type OrganizationUses, openOrganizationUse } from './organization-use.ts'
import { openSpendRows, type SpendRows } from './spend.ts'
import { openUsageTotals, type UsageTotals } from './usage-totals.ts'
import { openWebhookOutbox, type WebhookOutbox } from './webhook-outbox.ts'

/** The state that the writer's commands share. */
export interface WriteContext {
  boot: string
  ledger: Ledger
  totals: UsageTotals
  spend: SpendRows
  jobCounts: JobCounts
  counts: ExecutionCounts
  events: Events
  effects: GroupEffects
  outbox: WebhookOutbox
  use: OrganizationUses
  flow: ExecutionFlow
  batches: BatchFlow
}

/** The state that the commands of one connection share. */
export function openWriteContext(connection: Connection, boot: string): WriteContext {
  const effects = openCommitEffects()
  const outbox = openWebhookOutbox(connection, effects)
  const events = openEvents(connection, outbox)
  const spend = openSpendRows(connection, {
    addOfOrganization(organizationId, ...event) {
      events.addOfOrganization(organizationId, ...event)
      effects.eventOf(organizationId)
    },
  })
  const totals = openUsageTotals(connection)
  const jobCounts = openJobCounts(connection)
  const own = {
    boot,
    totals,
    spend,
    ledger: openLedger(connection, { totals, billed: job => spend.billed(job) }),
    jobCounts,
    use: openOrganizationUse(connection, jobCounts),
    counts: openExecutionCounts(connection),
    events,
    effects,
    outbox,
    batches: openBatchFlow(connection, { events, effects }),
  }
  return { ...own, flow: openExecutionFlow(connection, own) }
}

/** The part of it that is reverted with a transaction. */
export const memoryOf = ({
  ledger,
  totals,
  spend,
  jobCounts,
  counts,
  events,
  effects,
  outbox,
  flow,
}: WriteContext): TransactionMemory => ({
  begin() {
    jobCounts.begin()
  },
  mark() {
    const undo = [ledger, totals, spend, jobCounts, counts, events, effects].map(memory => memory.mark())
    return () => {
      for (const revert of undo) revert()
      outbox.forget()
      flow.forget()
    }
  },
  write() {
    totals.write()
    jobCounts.write()
    counts.write()
    spend.write()
    events.write()
    outbox.write()
  },
  forget() {
    ledger.forget()
    totals.forget()
    spend.forget()
    jobCounts.forget()
    counts.forget()
    events.forget()
    effects.forget()
    outbox.forget()
    flow.forget()
  },
})
