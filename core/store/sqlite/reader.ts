import { Failure } from '../../failure.ts'
import { auditReads } from './audit.ts'
import { batchReads } from './batch-reads.ts'
import { meaningOf, openDatabase } from './database.ts'
import { eventReads } from './events.ts'
import { executionReads } from './execution-reads.ts'
import { fileReads } from './files.ts'
import { jobList } from './job-list.ts'
import { jobReads } from './job-reads.ts'
import { idempotencyReads, keyReads } from './keys.ts'
import { ledgerLength } from './ledger.ts'
import { libraryReads } from './library.ts'
import { organizationReads } from './organizations.ts'
import { responseReads } from './responses.ts'
import { resultReads } from './result-rows.ts'
import { sessionReads } from './sessions.ts'
import { spendReads } from './spend.ts'
import { tokenReads } from './token-reads.ts'
import { userReads } from './users.ts'
import { webhookEndpointReads } from './webhook-endpoints.ts'
import { webhookDeliveryReads } from './webhook-reads.ts'
import { workflowReads } from './workflows.ts'

/**
 * The read-only connection of the calling thread. Every read is a few short statements, none of which scans more than a
 * bounded number of rows (about 2 ms of the thread). None stays open, because an open read keeps SQLite from emptying
 * the WAL. A read sees every commit that was answered before it.
 */
export function openReader(database: string, onBroken: (failure: Error) => void) {
  const connection = openDatabase(database, { readonly: true })
  const length = ledgerLength(connection)

  function guarded<Given extends unknown[], Result>(read: (...given: Given) => Result): (...given: Given) => Result {
    return (...given) => {
      try {
        return read(...given)
      } catch (thrown) {
        if (meaningOf(thrown) === 'fatal') onBroken(thrown as Error)
        throw connection.open
          ? Failure.from(thrown)
          : new Failure('shutting_down', 'This server is shutting down. Retry later.', { retryAfterMs: 5000 })
      }
    }
  }
  const all = <Reads extends Record<string, (...given: never[]) => unknown>>(reads: Reads): Reads =>
    Object.fromEntries(Object.entries(reads).map(([name, read]) => [name, guarded(read)])) as unknown as Reads

  return {
    organizations: all(organizationReads(connection)),
    users: all(userReads(connection)),
    tokens: all(tokenReads(connection)),
    audit: all(auditReads(connection)),
    spend: all(spendReads(connection)),
    jobs: all({ ...jobReads(connection), ...keyReads(connection), list: jobList(connection) }),
    results: all(resultReads(connection)),
    events: all(eventReads(connection)),
    idempotency: all(idempotencyReads(connection)),
    responses: all(responseReads(connection)),
    sessions: all(sessionReads(connection)),
    files: all(fileReads(connection)),
    library: all(libraryReads(connection)),
    workflows: all(workflowReads(connection)),
    batches: all(batchReads(connection)),
    executions: all(executionReads(connection)),
    webhooks: all({ ...webhookEndpointReads(connection), ...webhookDeliveryReads(connection) }),
    ledgerRows: guarded(length),
    close: () => {
      connection.close()
    },
  }
}
export type Reader = ReturnType<typeof openReader>
