import type { TransactionMemory } from './batch.ts'
import type { Connection } from './database.ts'
import { openEvents } from './events.ts'
import { openExecutionCounts } from './execution-counts.ts'
import { openFlow } from './flow.ts'
import type { Writing } from './job-end.ts'
import { openLedger } from './ledger.ts'
import { openMoves } from './moves.ts'
import { openTally } from './tally.ts'

/** What the commands of one connection share. */
export function openWriting(connection: Connection, boot: string): Writing {
  const own = {
    boot,
    ledger: openLedger(connection),
    tally: openTally(connection),
    counts: openExecutionCounts(connection),
    events: openEvents(connection),
    moves: openMoves(),
  }
  return { ...own, flow: openFlow(connection, own) }
}

/** What of it belongs to a transaction. */
export const memoryOf = ({ ledger, tally, counts, events, moves, flow }: Writing): TransactionMemory => ({
  mark() {
    const undo = [ledger.mark(), tally.mark(), counts.mark(), events.mark(), moves.mark()]
    return () => {
      for (const back of undo) back()
      flow.forget()
    }
  },
  write() {
    tally.write()
    counts.write()
    events.write()
  },
  forget() {
    ledger.forget()
    tally.forget()
    counts.forget()
    events.forget()
    moves.forget()
    flow.forget()
  },
})
