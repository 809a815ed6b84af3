import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Log, openLog } from '../../log.ts'
import { StoreRefusal } from '../refusal.ts'
import type { Store } from '../store.ts'
import { assemble } from './assemble.ts'
import { openDatabase } from './database.ts'
import { type InstanceLock, pathsIn, prepareDirectory, takeInstanceLock } from './directory.ts'
import { currentVersion, versionOf } from './migrations.ts'
import { openReader, type Reader } from './reader.ts'
import { openResults } from './results.ts'
import { startThread } from './thread.ts'
import { openWriterThread } from './writer-thread.ts'

/** How long a server that is just starting gets to create or migrate the database. */
const patienceMs = 5000

/**
 * The same store for a command of the CLI, beside a running server or without one: no instance lock, no repair, as
 * durable. Creates and migrates the database when no server runs; rejects with StoreRefusal when one runs that has
 * another schema.
 */
export async function openAdminStore(dataDir: string, log: Log = openLog('warn')): Promise<Store> {
  const { database, results: folder } = pathsIn(dataDir)
  await using opened = new AsyncDisposableStack()
  prepareDirectory(dataDir)
  const lock = await lockToMigrate(dataDir)
  using held = new DisposableStack()
  held.defer(() => lock?.release())
  // The command ends with the error of the call that met it.
  const onFatal = (failure: Error) => log.error('The database failed', {}, failure)
  let reader: Reader | undefined
  opened.defer(() => reader?.close())
  const writer = await openWriterThread({
    thread: startThread(),
    start: { role: 'admin', dataDir, boot: `admin-${randomUUID()}`, created: lock?.created ?? true },
    log,
    onFatal,
    onFull: () => {},
  })
  opened.defer(() => writer.close())
  lock?.markCreated()
  reader = openReader(database, failure => writer.fail(failure, 74))
  const open = opened.move()
  // What it forgets is erased by the server, or by the next one.
  const results = openResults({ folder, onFull: () => {} })
  return assemble({ writer, reader, results, database, close: () => open.disposeAsync() })
}

/** The instance lock, held for the moment of creating or migrating; undefined when there is nothing to do. */
async function lockToMigrate(dataDir: string): Promise<InstanceLock | undefined> {
  const until = performance.now() + patienceMs
  for (;;) {
    if (schemaOf(dataDir) === currentVersion) return undefined
    try {
      return takeInstanceLock(dataDir, 0)
    } catch (cause) {
      if (!(cause instanceof StoreRefusal && cause.exitCode === 64)) throw cause
      if (performance.now() > until)
        throw new StoreRefusal(
          64,
          `The server that runs on ${dataDir} is of another version than this command. Use the infer of that server, or restart it with this one.`,
          cause,
        )
    }
    await delay(50)
  }
}

/** The version of the schema that is there; 0 for none, and for what the writer will refuse in better words. */
function schemaOf(dataDir: string): number {
  try {
    const connection = openDatabase(pathsIn(dataDir).database, { readonly: true })
    try {
      return versionOf(connection)
    } finally {
      connection.close()
    }
  } catch {
    return 0
  }
}

// The rest of what the command line does to a data directory: one door for all of it.
export { checkDatabase, type DatabaseReport } from './check.ts'
export { backupDatabase, restoreDatabase } from './restore.ts'
