import type { TransactionMemory } from './batch.ts'
import { openCommitEffects } from './commit-effects.ts'
import type { Connection } from './database.ts'
import { openEvents } from './events.ts'
import { openExecutionCounts } from './execution-counts.ts'
import { openExecutionFlow } from './execution-flow.ts'
import { openJobCounts } from './job-counts.ts'
import type { WriteContext } from './job-end.ts'
import { openLedger } from './ledger.ts'
import { openSpendRows } from './spend.ts'

/** The state that the commands of one connection share. */
export function openWriteContext(connection: Connection, boot: string): WriteContext {
  const events = openEvents(connection)
  const spend = openSpendRows(connection, events)
  const own = {
    boot,
    ledger: openLedger(connection, spend),
    spend,
    jobCounts: openJobCounts(connection),
    counts: openExecutionCounts(connection),
    events,
    effects: openCommitEffects(),
  }
  return { ...own, flow: openExecutionFlow(connection, own) }
}

/** The part of it that is reverted with a transaction. */
export const memoryOf = ({
  ledger,
  spend,
  jobCounts,
  counts,
  events,
  effects,
  flow,
}: WriteContext): TransactionMemory => ({
  mark() {
    const undo = [ledger.mark(), spend.mark(), jobCounts.mark(), counts.mark(), events.mark(), effects.mark()]
    return () => {
      for (const revert of undo) revert()
      flow.forget()
    }
  },
  write() {
    jobCounts.write()
    counts.write()
    spend.write()
    events.write()
  },
  forget() {
    ledger.forget()
    spend.forget()
    jobCounts.forget()
    counts.forget()
    events.forget()
    effects.forget()
    flow.forget()
  },
})
