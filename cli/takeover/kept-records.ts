import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../core/log.ts'
import { syncNow } from '../../core/store/sqlite/directory.ts'
import type { FinishedJob, Store } from '../../core/store/store.ts'

const folderIn = (dataDir: string): string => join(dataDir, 'unwritten-records')

/**
 * Keeps the records of finished calls in a file of the data directory, for a server that cannot write them to the database;
 * the next one does. They are on the disk when this returns.
 */
export function keepRecords(dataDir: string, records: readonly FinishedJob[]): void {
  const folder = folderIn(dataDir)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, `${randomUUID()}.json`)
  writeFileSync(`${path}.part`, JSON.stringify(records), { mode: 0o600, flush: true })
  renameSync(`${path}.part`, path)
  syncNow(folder)
}

/** Writes the records that an earlier server has kept to the store, which skips those that it has. Never rejects. */
export async function storeKeptRecords({
  dataDir,
  store,
  log,
}: {
  dataDir: string
  store: { jobs: Pick<Store['jobs'], 'record'> }
  log: Log
}): Promise<void> {
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
