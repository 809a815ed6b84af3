import { StoreRefusal } from '../refusal.ts'
import { applicationId, type Connection } from './database.ts'
import { initialSchema } from './migrations/001-initial-schema.ts'
import { jobClass } from './migrations/002-job-class.ts'
import { accountsAndUsage } from './migrations/003-accounts-and-usage.ts'
import { spend } from './migrations/004-spend.ts'
import { webhooks } from './migrations/005-webhooks.ts'
import { jobRegion } from './migrations/006-job-region.ts'
import { usageMigration } from './migrations/007-usage.ts'
import { organizationEnds } from './migrations/008-organization-ends.ts'
import { organizationUse } from './migrations/009-organization-use.ts'
import { filePurposesMigration } from './migrations/010-file-purposes.ts'
import { batches } from './migrations/011-batches.ts'
import { responses } from './migrations/012-responses.ts'
import { sessions } from './migrations/013-sessions.ts'
import { parentBudgets } from './migrations/014-parent-budgets.ts'
import { unfinishedExecutions } from './migrations/015-unfinished-executions.ts'
import { limitsParent } from './migrations/016-limits-parent.ts'
import { referenceQueue } from './migrations/017-reference-queue.ts'
import { modelNames } from './migrations/018-model-names.ts'
import { traceparent } from './migrations/019-traceparent.ts'
import { parentTraceparent } from './migrations/020-parent-traceparent.ts'
import { skipReason } from './migrations/021-skip-reason.ts'
import { awaits } from './migrations/022-awaits.ts'
import { items } from './migrations/023-items.ts'
import { nestedExecutions } from './migrations/024-nested-executions.ts'
import { recentRuns } from './migrations/025-recent-runs.ts'
import { waits } from './migrations/026-waits.ts'
import { keyDigests } from './migrations/027-key-digests.ts'
import { shortLists } from './migrations/028-short-lists.ts'
import { nestedUnfinished } from './migrations/029-nested-unfinished.ts'
import { waitingTime } from './migrations/030-waiting-time.ts'
import { localOnly } from './migrations/031-local-only.ts'
import { conversations } from './migrations/032-conversations.ts'
import { relayed } from './migrations/033-relayed.ts'
import { fallbackHolds } from './migrations/034-fallback-holds.ts'
import { conversationLinks } from './migrations/035-conversation-links.ts'
import { timeToFirstToken } from './migrations/036-time-to-first-token.ts'

export interface Migration {
  version: number
  sql: string
}

/** All schemas by version, from 1. A released one is never edited; a change is a new one at the end. */
export const migrations: readonly Migration[] = [
  initialSchema,
  jobClass,
  accountsAndUsage,
  spend,
  webhooks,
  jobRegion,
  usageMigration,
  organizationEnds,
  organizationUse,
  filePurposesMigration,
  batches,
  responses,
  sessions,
  parentBudgets,
  unfinishedExecutions,
  limitsParent,
  referenceQueue,
  modelNames,
  traceparent,
  parentTraceparent,
  skipReason,
  awaits,
  items,
  nestedExecutions,
  recentRuns,
  waits,
  keyDigests,
  shortLists,
  nestedUnfinished,
  waitingTime,
  localOnly,
  conversations,
  relayed,
  fallbackHolds,
  conversationLinks,
  timeToFirstToken,
].map((sql, at) => ({ version: at + 1, sql }))

/** The schema version that this program reads and writes. */
export const currentVersion = migrations.at(-1)!.version

/** `PRAGMA user_version`: 0 before the first migration. */
export const schemaVersionOf = (connection: Connection): number =>
  connection.pragma('user_version', { simple: true }) as number

/**
 * Refuses with exit code 65 a database that this program must not write to: one of another program, or one that a newer
 * infer has migrated, whose columns it would not fill.
 */
export function refuseForeign(connection: Connection, path: string, known = currentVersion): void {
  const version = schemaVersionOf(connection)
  const owner = connection.pragma('application_id', { simple: true })
  const empty = connection.scalar`SELECT count(*) FROM sqlite_schema`.get() === 0
  if (owner !== applicationId && !empty)
    throw new StoreRefusal(65, `The file ${path} is a database of another program. Choose another data directory.`)
  if (version > known)
    throw new StoreRefusal(
      65,
      `The database ${path} has schema ${version}, and this program knows up to ${known}. ` +
        'Run the newer infer that wrote it, or restore a backup from before the upgrade with "infer restore".',
    )
}

/**
 * Updates the schema, each step in its own transaction, so that a crash leaves one version or the next. `backup` runs
 * once, before the first step, if there is data to lose. Returns the version found, or null if nothing had to be done.
 */
export function migrate(
  connection: Connection,
  { backup, steps = migrations }: { backup: (from: number) => void; steps?: readonly Migration[] },
): number | null {
  const found = schemaVersionOf(connection)
  const due = steps.filter(step => step.version > found)
  if (due.length === 0) return null
  if (found > 0) backup(found)
  // Steps may change the conditions of a table in place.
  connection.unsafeMode(true)
  try {
    for (const step of due) apply(connection, step)
  } finally {
    connection.unsafeMode(false)
  }
  return found
}

function apply(connection: Connection, { version, sql }: Migration): void {
  connection.exec('BEGIN IMMEDIATE')
  try {
    // Two programs may start at the same time: the second one finds the work done.
    if (schemaVersionOf(connection) < version) {
      connection.exec(sql)
      connection.pragma(`application_id = ${applicationId}`)
      connection.pragma(`user_version = ${version}`)
    }
    connection.exec('COMMIT')
  } catch (cause) {
    if (connection.inTransaction) connection.exec('ROLLBACK')
    throw cause
  }
}
