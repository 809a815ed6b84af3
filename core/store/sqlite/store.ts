import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import type { Log } from '../../log.ts'
import type { Store } from '../store.ts'
import { checkDatabase } from './boot.ts'
import { refusalFor } from './damage.ts'
import { sqliteCode } from './database.ts'
import { pathsIn, prepareDirectory, takeInstanceLock } from './directory.ts'
import { openMethods } from './methods.ts'
import { openReader, type Reader } from './reader.ts'
import { openResultSweep } from './result-files.ts'
import { openResultWriter } from './results.ts'
import { openSpace, type Space } from './space.ts'
import { startThread } from './thread.ts'
import { openUsageThread } from './usage-thread.ts'
import { openWriterThread, prepareWriterThread } from './writer-thread.ts'

export interface StoreOptions {
  dataDir: string
  /** A writer thread that was started earlier; it ends with the store. */
  thread?: Worker | undefined
  /** What `prepareSqliteStore` has prepared; its `thread` is the writer thread. */
  prepared?: PreparedStore | undefined
  log: Log
  /** Below this much free disk space no new work is accepted. */
  minFreeBytes: number
  /** Size of the reserve file that is removed when the disk is full. */
  ballastBytes: number
  /**
   * The program must end now with this exit code: 74 for the disk, 70 for an internal error. Every later call rejects.
   */
  onFatal: (failure: Error, exitCode: number) => void
}

/** What is open before another server hands the data directory over. */
export interface PreparedStore {
  thread: Worker
  boot: string
  /** Absent if the schema is to be migrated first. */
  reader: { use: (onBroken: (failure: Error) => void) => Reader } | undefined
}

/**
 * Checks the database of a data directory that another server uses, and prepares to open it: `openSqliteStore` then takes a
 * few milliseconds. Rejects with StoreRefusal.
 */
export async function prepareSqliteStore({
  dataDir,
  thread = startThread(),
}: Pick<StoreOptions, 'dataDir' | 'thread'>): Promise<PreparedStore> {
  checkDatabase(dataDir)
  const boot = randomUUID()
  await prepareWriterThread(thread, dataDir, boot)
  return { thread, boot, reader: readerAhead(pathsIn(dataDir).database) }
}

function readerAhead(database: string): PreparedStore['reader'] {
  let broken = (_failure: Error): void => {}
  try {
    const reader = openReader(database, failure => broken(failure))
    return {
      use(onBroken) {
        broken = onBroken
        return reader
      },
    }
  } catch {
    return undefined
  }
}

/**
 * Opens the data directory as its only server: takes the instance lock, checks the structure, migrates (after a
 * backup), and requeues the jobs that an earlier boot was running. Rejects with StoreRefusal, which carries the exit
 * code.
 */
export async function openSqliteStore(options: StoreOptions): Promise<Store> {
  const { dataDir, log, onFatal, prepared } = options
  const { database, ballast, results: folder } = pathsIn(dataDir)
  await using opened = new AsyncDisposableStack()
  prepareDirectory(dataDir)
  const lock = takeInstanceLock(dataDir)
  opened.defer(() => lock.release())
  let openedSpace: Space | undefined
  opened.defer(() => openedSpace?.close())
  // Closed after the writer: callers of the last commands read their results.
  let reader: Reader | undefined
  opened.defer(() => reader?.close())
  // Started first: the thread checks and migrates while the rest of the program loads.
  const writerStarting = openWriterThread({
    thread: prepared?.thread ?? options.thread ?? startThread(),
    start: {
      role: 'server',
      dataDir,
      boot: prepared?.boot ?? randomUUID(),
      created: lock.created,
      checked: prepared !== undefined,
    },
    log,
    onFatal,
    onFull: () => openedSpace?.full(),
  })
  // May reject before the free space is known; `await context` below reports it.
  writerStarting.catch(() => {})
  opened.defer(() => writerStarting.then(opened => opened.close()).catch(() => {}))
  const space = await openSpace({ ...options, directory: dataDir, ballast })
  openedSpace = space
  const writer = await writerStarting
  lock.markCreated()
  try {
    const onBroken = (failure: Error) => writer.fail(failure, 74)
    reader = prepared?.reader?.use(onBroken) ?? openReader(database, onBroken)
  } catch (thrown) {
    throw sqliteCode(thrown) === undefined ? thrown : refusalFor(thrown, dataDir)
  }
  const results = openResultWriter({
    folder,
    onFull() {
      rmSync(ballast, { force: true })
      space.full()
    },
  })
  // A server that hands over has not crashed.
  const sweep = await openResultSweep({ dataDir, reader, writer, log, afterCrash: prepared === undefined })
  opened.defer(() => sweep.close())
  const usage = openUsageThread(dataDir)
  opened.defer(() => usage.close())
  const open = opened.move()
  return openMethods({
    writer,
    reader,
    usage,
    results,
    space,
    sweep,
    database,
    async leave() {
      await sweep.close()
      await writer.close(true)
      space.close()
      lock.release()
    },
    close: () => open.disposeAsync(),
  })
}
