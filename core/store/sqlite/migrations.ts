import { StoreRefusal } from '../refusal.ts'
import { applicationId, type Connection } from './database.ts'
import { initialSchema } from './migrations/001-initial-schema.ts'
import { jobClass } from './migrations/002-job-class.ts'

export interface Migration {
  version: number
  sql: string
}

/** Every schema there has been, oldest first. A released one is never edited; the next change is the next number. */
export const migrations: readonly Migration[] = [
  { version: 1, sql: initialSchema },
  { version: 2, sql: jobClass },
]

/** The schema that this program reads and writes. */
export const currentVersion = migrations.at(-1)!.version

/** `PRAGMA user_version`: 0 where nothing has been created yet. */
export const versionOf = (connection: Connection): number =>
  connection.pragma('user_version', { simple: true }) as number

/**
 * Refuses with exit code 65 what this program must not write to: somebody else's database, and one that a newer
 * program has migrated, whose columns it would not fill.
 */
export function refuseForeign(connection: Connection, path: string, known = currentVersion): void {
  const version = versionOf(connection)
  const owner = connection.pragma('application_id', { simple: true })
  const empty = connection.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0
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
 * Brings the schema up to date, each step in a transaction of its own, so that a crash leaves one version or the
 * next. `backup` runs once, before the first step, when there is data to lose. Returns the version that was there,
 * or null when nothing had to be done.
 */
export function migrate(
  connection: Connection,
  { backup, steps = migrations }: { backup: (from: number) => void; steps?: readonly Migration[] },
): number | null {
  const found = versionOf(connection)
  const due = steps.filter(step => step.version > found)
  if (due.length === 0) return null
  if (found > 0) backup(found)
  for (const { version, sql } of due) {
    connection.exec('BEGIN IMMEDIATE')
    try {
      // Two programs may start at once: whoever comes second finds the work done.
      if (versionOf(connection) < version) {
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
  return found
}
