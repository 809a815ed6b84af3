import { Failure } from '../../failure.ts'
import type { Statements } from '../method-table.ts'
import { auditReads } from './audit.ts'
import { batchReads } from './batches.ts'
import { conversationLinkReads } from './conversation-links.ts'
import { conversationReads } from './conversations.ts'
import { type Connection, meaningOf, openDatabase } from './database.ts'
import { eventReads } from './events.ts'
import { executionReads } from './execution-reads.ts'
import { fileReads } from './files.ts'
import { idempotencyReads } from './idempotency-keys.ts'
import { jobListReads } from './job-list.ts'
import { jobReads } from './job-reads.ts'
import { ledgerLength } from './ledger.ts'
import { libraryReads } from './library.ts'
import { organizationReads } from './organizations.ts'
import { recentRunReads } from './recent-runs.ts'
import { responseReads } from './responses.ts'
import { resultReads } from './results.ts'
import { shuttingDown } from './sent-failure.ts'
import { sessionReads } from './sessions.ts'
import { spendReads } from './spend.ts'
import { tokenReads } from './tokens.ts'
import { userReads } from './users.ts'
import { waitReads } from './waits.ts'
import { webhookDeliveryReads } from './webhook-deliveries.ts'
import { webhookEndpointReads } from './webhook-endpoints.ts'
import { workflowReads } from './workflows.ts'

const openReads = (connection: Connection) =>
  ({
    ...organizationReads(connection),
    ...userReads(connection),
    ...tokenReads(connection),
    ...auditReads(connection),
    ...spendReads(connection),
    ...jobReads(connection),
    ...jobListReads(connection),
    ...recentRunReads(connection),
    ...eventReads(connection),
    ...idempotencyReads(connection),
    ...responseReads(connection),
    ...conversationReads(connection),
    ...conversationLinkReads(connection),
    ...sessionReads(connection),
    ...fileReads(connection),
    ...libraryReads(connection),
    ...workflowReads(connection),
    ...batchReads(connection),
    ...executionReads(connection),
    ...waitReads(connection),
    ...webhookEndpointReads(connection),
    ...webhookDeliveryReads(connection),
  }) satisfies Statements
export type Reads = ReturnType<typeof openReads>

/**
 * The read-only connection of the calling thread. Every read is a few short statements, none of which scans more than a
 * bounded number of rows (about 2 ms of the thread). None stays open, because an open read keeps SQLite from emptying
 * the WAL. A read sees every commit that was answered before it.
 */
export function openReader(database: string, onBroken: (failure: Error) => void) {
  const connection = openDatabase(database, { readonly: true })

  const guarded =
    <Given extends unknown[], Answer>(read: (...given: Given) => Answer) =>
    (...given: Given): Answer => {
      try {
        const answer = read(...given)
        if (answer instanceof Failure) throw answer
        return answer
      } catch (thrown) {
        if (meaningOf(thrown) === 'fatal') onBroken(thrown as Error)
        throw connection.open ? Failure.from(thrown) : shuttingDown()
      }
    }
  const all = <Table extends Record<string, (...given: never[]) => unknown>>(table: Table): Table =>
    Object.fromEntries(Object.entries(table).map(([name, read]) => [name, guarded(read)])) as unknown as Table

  return {
    /** By the names of their methods. */
    reads: all(openReads(connection)),
    results: all(resultReads(connection)),
    ledgerRows: guarded(ledgerLength(connection)),
    close: () => {
      connection.close()
    },
  }
}
export type Reader = ReturnType<typeof openReader>
