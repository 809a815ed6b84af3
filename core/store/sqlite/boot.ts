import { existsSync, mkdirSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { LogFields } from '../../log.ts'
import type { Store } from '../store.ts'
import { damaged, refusalFor } from './damage.ts'
import { type Connection, meaningOf, openAsIs, openDatabase, structuralFault } from './database.ts'
import { createPrivate, pathsIn, syncNow } from './directory.ts'
import { givenUp } from './give-up.ts'
import { currentVersion, type Migration, migrate, migrations, refuseForeign, schemaVersionOf } from './migrations.ts'
import { recoverJobs } from './recovery.ts'
import { importResultFiles } from './result-files.ts'
import { countInterruptedFallbacks } from './spend.ts'

interface BootOptions {
  role: 'server' | 'admin'
  dataDir: string
  boot: string
  created: boolean
  /** The structure was checked just before. */
  checked?: boolean | undefined
  /** The connection of `openAhead`. */
  ahead?: Connection | undefined
  /** The migrations; all of them by default, fewer in tests. */
  steps?: readonly Migration[]
  say: (level: 'info' | 'warn', message: string, fields: LogFields) => void
}

/**
 * Opens the writing connection: checks the structure, migrates the schema, requeues interrupted jobs, in this order.
 * Throws StoreRefusal with a sentence that says what to do; never starts on a damaged database.
 */
export function bootDatabase(options: BootOptions): { connection: Connection; recovery: Store['recovery'] } {
  const { dataDir, created } = options
  const { database } = pathsIn(dataDir)
  const empty = statSync(database).size === 0
  if (created && empty) throw damaged(dataDir, 'it is empty, although it has held data before')
  let connection: Connection | undefined
  try {
    if (!empty && !options.checked) inspect(database, options)
    connection = options.ahead ?? openDatabase(database)
    return { connection, recovery: prepare(connection, options) }
  } catch (thrown) {
    connection?.close()
    throw refusalFor(thrown, dataDir)
  }
}

/** Opens the writing connection to a database that another server still writes; undefined if its schema is to be migrated. */
export function openAhead(dataDir: string): Connection | undefined {
  const connection = openDatabase(pathsIn(dataDir).database)
  if (schemaVersionOf(connection) === currentVersion) return connection
  connection.close()
  return undefined
}

/**
 * Checks the structure of a database that another server is using, and whether this version can open it. Throws
 * StoreRefusal.
 */
export function checkDatabase(dataDir: string): void {
  try {
    inspect(pathsIn(dataDir).database, { role: 'server', dataDir })
  } catch (thrown) {
    throw refusalFor(thrown, dataDir)
  }
}

/** Runs before anything is written: a refused database stays as it was. */
function inspect(
  database: string,
  { role, dataDir, steps = migrations }: Pick<BootOptions, 'role' | 'dataDir' | 'steps'>,
): void {
  const known = steps.at(-1)!.version
  if (role === 'admin') {
    using connection = openAsIs(database, { readonly: true })
    return refuseForeign(connection, database, known)
  }
  const fault = structuralFault(database, connection => refuseForeign(connection, database, known))
  if (fault !== undefined) throw damaged(dataDir, fault)
}

function prepare(connection: Connection, options: BootOptions): Store['recovery'] {
  const { boot, role, dataDir, say, steps = migrations } = options
  const migratedFrom = retryWithoutBallast(dataDir, () =>
    migrate(connection, { steps, backup: from => backupBefore(connection, dataDir, from, say) }),
  )
  const report = (id: string, cause: string) => say('warn', givenUp, { id, cause })
  const repaired =
    role === 'admin'
      ? { requeued: 0, crashed: 0 }
      : retryWithoutBallast(dataDir, () => {
          const now = Date.now()
          countInterruptedFallbacks(connection, boot, now)
          return recoverJobs(connection, boot, now, report)
        })
  return { ...repaired, migratedFrom, bootId: boot }
}

/** If the disk is full, removes the ballast and tries again; the ballast is written again once there is space. */
function retryWithoutBallast<Result>(dataDir: string, work: () => Result): Result {
  try {
    return work()
  } catch (thrown) {
    const { ballast } = pathsIn(dataDir)
    if (meaningOf(thrown) !== 'full' || !existsSync(ballast)) throw thrown
    unlinkSync(ballast)
    return work()
  }
}

/** Makes a complete copy before a schema change; `VACUUM INTO` works because nothing else runs yet. */
function backupBefore(connection: Connection, dataDir: string, from: number, say: BootOptions['say']): void {
  const { backups } = pathsIn(dataDir)
  mkdirSync(backups, { recursive: true, mode: 0o700 })
  const to = join(backups, `before-upgrade-from-${from}-${new Date().toISOString().replaceAll(':', '-')}.db`)
  createPrivate(to)
  connection.statement`VACUUM INTO ?`.run(to)
  const missing = importResultFiles(to, pathsIn(dataDir).results)
  if (missing > 0) say('warn', 'Results are missing in the backup before the upgrade', { results: missing })
  syncNow(to)
  syncNow(backups)
  say('info', 'Made a backup before the upgrade of the database', { file: to, schema: from })
}
