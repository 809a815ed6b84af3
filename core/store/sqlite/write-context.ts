import type { TransactionMemory } from './batch.ts'
import { openCommitEffects } from './commit-effects.ts'
import type { Connection } from './database.ts'
import { openEvents } from './events.ts'
import { openExecutionCounts } from './execution-counts.ts'
import { openExecutionFlow } from './execution-flow.ts'
import { openJobCounts } from './job-counts.ts'
import type { WriteContext } from './job-end.ts'
import { openLedger } from './ledger.ts'
import { openOrganizationUse } from './organization-use.ts'

/** The state that the commands of one connection share. */
export function openWriteContext(connection: Connection, boot: string): WriteContext {
  const jobCounts = openJobCounts(connection)
  const own = {
    boot,
    ledger: openLedger(connection),
    jobCounts,
    use: openOrganizationUse(connection, jobCounts),
    counts: openExecutionCounts(connection),
    events: openEvents(connection),
    effects: openCommitEffects(),
  }
  return { ...own, flow: openExecutionFlow(connection, own) }
}

/** The part of it that is reverted with a transaction. */
export const memoryOf = ({ ledger, jobCounts, counts, events, effects, flow }: WriteContext): TransactionMemory => ({
  begin() {
    jobCounts.begin()
  },
  mark() {
    const undo = [ledger.mark(), jobCounts.mark(), counts.mark(), events.mark(), effects.mark()]
    return () => {
      for (const revert of undo) revert()
      flow.forget()
    }
  },
  write() {
    jobCounts.write()
    counts.write()
    events.write()
  },
  forget() {
    ledger.forget()
    jobCounts.forget()
    counts.forget()
    events.forget()
    effects.forget()
    flow.forget()
  },
})
