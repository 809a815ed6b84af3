import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Log, openLog } from '../../log.ts'
import { StoreRefusal } from '../refusal.ts'
import type { Store } from '../store.ts'
import { openDatabase } from './database.ts'
import { type InstanceLock, pathsIn, prepareDirectory, takeInstanceLock } from './directory.ts'
import { openMethods } from './methods.ts'
import { currentVersion, schemaVersionOf } from './migrations.ts'
import { openReader, type Reader } from './reader.ts'
import { openResultWriter } from './results.ts'
import { startThread } from './thread.ts'
import { openUsageThread } from './usage-thread.ts'
import { openWriterThread } from './writer-thread.ts'

/** How long to wait for a starting server to create or migrate the database. */
const maxWaitMs = 5000

/**
 * Opens the store for a CLI command, beside a running server or without one: no instance lock, no repair, the same
 * durability. Creates and migrates the database if no server runs; rejects with StoreRefusal if the running server has
 * another schema.
 */
export async function openAdminStore(dataDir: string, log: Log = openLog('warn')): Promise<Store> {
  const { database, results: folder } = pathsIn(dataDir)
  await using opened = new AsyncDisposableStack()
  prepareDirectory(dataDir)
  const lock = await lockToMigrate(dataDir)
  using held = new DisposableStack()
  held.defer(() => lock?.release())
  // The command ends with the error of the call that failed.
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
  const usage = openUsageThread(dataDir)
  opened.defer(() => usage.close())
  const open = opened.move()
  // The server, or the next one, erases the results of the jobs that this command removes.
  const results = openResultWriter({ folder, onFull: () => {} })
  return openMethods({ writer, reader, usage, results, database, close: () => open.disposeAsync() })
}

/** The instance lock, held while creating or migrating; undefined if there is nothing to do. */
async function lockToMigrate(dataDir: string): Promise<InstanceLock | undefined> {
  const until = performance.now() + maxWaitMs
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

/** The schema version of the database; 0 for none, and for a file that the writer refuses with a better message. */
function schemaOf(dataDir: string): number {
  try {
    using connection = openDatabase(pathsIn(dataDir).database, { readonly: true })
    return schemaVersionOf(connection)
  } catch {
    return 0
  }
}

// All that the CLI does to a data directory is exported here.
export { checkDatabase, type DatabaseReport } from './check.ts'
export { backupDatabase, restoreDatabase, storedFilesIn } from './restore.ts'
