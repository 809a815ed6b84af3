import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import type { Log } from '../../log.ts'
import type { Store } from '../store.ts'
import { assemble } from './assemble.ts'
import { refusalFor } from './damage.ts'
import { sqliteCode } from './database.ts'
import { pathsIn, prepareDirectory, takeInstanceLock } from './directory.ts'
import { openReader, type Reader } from './reader.ts'
import { openResultSweep } from './result-sweep.ts'
import { openResults } from './results.ts'
import { openSpace, type Space } from './space.ts'
import { startThread } from './thread.ts'
import { openWriterThread } from './writer-thread.ts'

export interface StoreOptions {
  dataDir: string
  /** For its writer, where one was started before; it is ended with the store. */
  thread?: Worker | undefined
  log: Log
  /** Below this much free disk no new work is taken. */
  minFreeBytes: number
  /** Size of the file that is given up when the disk is full. */
  ballastBytes: number
  /** The program must end now with this exit code: 74 the disk, 70 ourselves. Every later call rejects. */
  onFatal: (failure: Error, exitCode: number) => void
}

/**
 * Opens the data directory as its only server: takes the instance lock, checks the structure, migrates (with a backup
 * first), gives back what an earlier boot was running. Rejects with StoreRefusal, which carries the exit code.
 */
export async function openSqliteStore(options: StoreOptions): Promise<Store> {
  const { dataDir, log, onFatal } = options
  const { database, ballast, results: folder } = pathsIn(dataDir)
  await using opened = new AsyncDisposableStack()
  prepareDirectory(dataDir)
  const lock = takeInstanceLock(dataDir)
  opened.defer(() => lock.release())
  let watched: Space | undefined
  opened.defer(() => watched?.close())
  // Closed after the writer: what is answered last is still read back.
  let reader: Reader | undefined
  opened.defer(() => reader?.close())
  // Told what to do before anything is waited for: it does it while the rest of the program is read.
  const context = openWriterThread({
    thread: options.thread ?? startThread(),
    start: { role: 'server', dataDir, boot: randomUUID(), created: lock.created },
    log,
    onFatal,
    onFull: () => watched?.full(),
  })
  // It may be refused before the disk has been looked at; whoever waits for it below hears why.
  context.catch(() => {})
  opened.defer(() => context.then(opened => opened.close()).catch(() => {}))
  const space = await openSpace({ ...options, directory: dataDir, ballast })
  watched = space
  const writer = await context
  lock.markCreated()
  try {
    reader = openReader(database, failure => writer.fail(failure, 74))
  } catch (thrown) {
    throw sqliteCode(thrown) === undefined ? thrown : refusalFor(thrown, dataDir)
  }
  const results = openResults({
    folder,
    onFull() {
      rmSync(ballast, { force: true })
      space.full()
    },
  })
  const sweep = await openResultSweep({ dataDir, reader, writer, log })
  opened.defer(() => sweep.close())
  const open = opened.move()
  return assemble({ writer, reader, results, space, sweep, database, close: () => open.disposeAsync() })
}
