import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../core/log.ts'
import { syncNow } from '../../core/store/sqlite/directory.ts'
import type { FinishedJob, Store } from '../../core/store/store.ts'

const folderIn = (dataDir: string): string => join(dataDir, 'unwritten-records')

/**
 * Keeps the records of finished calls in a file of the data directory, for a server that cannot write them to the database;
 * the one that runs then or the next one does. They are on the disk when this returns.
 */
export function keepRecords(dataDir: string, records: readonly FinishedJob[]): void {
  const folder = folderIn(dataDir)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, `${randomUUID()}.json`)
  writeFileSync(`${path}.part`, JSON.stringify(records), { mode: 0o600, flush: true })
  renameSync(`${path}.part`, path)
  syncNow(folder)
}

interface KeptRecordsOptions {
  dataDir: string
  store: { jobs: Pick<Store['jobs'], 'record'> }
  log: Log
}

/**
 * Writes the records that earlier servers have kept to the store, which skips those that it has: first those that are there,
 * then those that a process of an earlier server keeps when it ends later. Never rejects. Close it before this server hands its
 * data directory over: it would read without end what it keeps itself.
 */
export async function openKeptRecords(options: KeptRecordsOptions): Promise<{ close: () => void }> {
  const { dataDir, log } = options
  const folder = folderIn(dataDir)
  let writing = Promise.resolve()
  const write = () => (writing = writing.then(() => storeKeptRecords(options)))
  const close = watchFolder(
    folder,
    name => name.endsWith('.json') && existsSync(join(folder, name)) && void write(),
    log,
  )
  await write()
  return { close }
}

/** Calls back with the name of each file that appears in the folder or leaves it. Returns the function that ends that. */
function watchFolder(folder: string, changed: (name: string) => void, log: Log): () => void {
  const failed = (cause: unknown) =>
    log.warn(
      `The folder ${folder} cannot be watched: records that other processes keep there wait for the next start`,
      {},
      cause,
    )
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const watcher = watch(folder, { persistent: false }, (_, name) => name !== null && changed(name))
    watcher.on('error', failed)
    return () => watcher.close()
  } catch (cause) {
    failed(cause)
    return () => {}
  }
}

async function storeKeptRecords({ dataDir, store, log }: KeptRecordsOptions): Promise<void> {
  for (const path of keptIn(dataDir)) {
    try {
      const records = JSON.parse(readFileSync(path, 'utf8')) as FinishedJob[]
      await store.jobs.record(records)
      rmSync(path)
      log.info('Wrote the records of calls that an earlier server could not write', { records: records.length })
    } catch (thrown) {
      log.error(`Records of finished calls could not be written: they stay in ${path} until the next start`, {}, thrown)
    }
  }
}

/** The files with kept records; none if the folder cannot be read. */
function keptIn(dataDir: string): string[] {
  const folder = folderIn(dataDir)
  try {
    return readdirSync(folder).flatMap(name => (name.endsWith('.json') ? join(folder, name) : []))
  } catch {
    return []
  }
}
