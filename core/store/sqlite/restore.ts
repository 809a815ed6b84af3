import { chmodSync, copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreRefusal } from '../refusal.ts'
import type { FileRecord } from '../store.ts'
import { selected } from './columns.ts'
import { copyDatabase, verifyCopy } from './copy.ts'
import { type Connection, openAsIs, openDatabase, structuralFault } from './database.ts'
import { createPrivate, linkOrCopy, pathsIn, prepareDirectory, syncNow, takeInstanceLock } from './directory.ts'
import { exportResultFiles, keepResultsBeside, resultsIn } from './result-files.ts'

/**
 * Makes an online copy of the database of a data directory, whether a server runs on it or not: a consistent snapshot,
 * verified after writing, mode 0600. Rejects with StoreRefusal. Unlike `Store.backup`, it works in the calling thread.
 */
export async function backupDatabase(
  dataDir: string,
  to: string,
  onProgress?: (done: number, total: number) => void,
): Promise<{ bytes: number }> {
  const { database } = pathsIn(dataDir)
  if (!existsSync(database)) throw new StoreRefusal(64, `There is no database in ${dataDir}.`)
  return copyDatabase(database, to, onProgress)
}

/**
 * Replaces the database with a backup. The file is verified first; the swap is one rename, so that a crash leaves the
 * old database or the new one; the old one is kept under the returned name. Rejects with StoreRefusal while a server
 * runs on the directory, and if the backup is damaged, of another program, or newer than this program.
 */
export async function restoreDatabase(
  dataDir: string,
  file: string,
  onStep: (step: 'verifying' | 'copying' | 'swapping') => void = () => {},
): Promise<{ bytes: number; previous: string | null }> {
  if (!existsSync(file) || !statSync(file).isFile()) throw new StoreRefusal(64, `There is no backup file ${file}.`)
  prepareDirectory(dataDir)
  const lock = takeInstanceLock(dataDir)
  const { database, results } = pathsIn(dataDir)
  const incoming = `${database}.restoring`
  const aside = `${database}.before-restore-${new Date().toISOString().replaceAll(':', '-')}`
  try {
    onStep('copying')
    rmSync(incoming, { force: true })
    createPrivate(incoming)
    copyFileSync(file, incoming)
    chmodSync(incoming, 0o600)
    // Verifies the copy and not the original: what is checked is what will be used, and the original stays untouched.
    onStep('verifying')
    verifyCopy(incoming, { file })
    const old = statSync(database).size > 0 ? resultsIn(results) : []
    // Returns it to WAL mode, which is needed to read it before a server has opened it.
    const next = openDatabase(incoming)
    const missing = exportResults(next, results, file)
    next.close()
    if (missing > 0)
      throw new StoreRefusal(
        65,
        `The backup ${file} is not usable: ${missing} results of jobs that it names are not in ${resultsBeside(file)}. Use another backup.`,
      )
    syncNow(incoming)
    onStep('swapping')
    // The next server sweeps results that its database does not name; the database that is set aside still needs them.
    keepResultsBeside(results, old, resultsBeside(aside))
    const previous = moveAside(database, aside)
    renameSync(incoming, database)
    syncNow(dataDir)
    lock.markCreated()
    return { bytes: statSync(database).size, previous }
  } catch (cause) {
    rmSync(incoming, { force: true })
    if (!existsSync(aside)) rmSync(resultsBeside(aside), { recursive: true, force: true })
    if (cause instanceof StoreRefusal) throw cause
    throw new StoreRefusal(74, `The backup ${file} was not restored: ${(cause as Error).message}.`, cause)
  } finally {
    lock.release()
  }
}

/** The folder with the large results of a database that was set aside. A backup contains its own. */
const resultsBeside = (database: string): string => `${database}.results`

/** Writes the large results to files, and names all of them or none: after a crash the next start sweeps the files. */
const exportResults = (next: Connection, results: string, file: string): number =>
  next.transaction(() => exportResultFiles(next, results, [resultsBeside(file), pathsIn(dirname(file)).results]))()

/**
 * Links the old database under a second name. Its WAL must not survive the swap: SQLite would replay the old frames
 * into the new database. A sound database absorbs its WAL first; that of a damaged one is renamed with it.
 */
function moveAside(database: string, previous: string): string | null {
  if (statSync(database).size === 0) return null
  if (isSound(database)) {
    using old = openDatabase(database)
    old.pragma('wal_checkpoint(TRUNCATE)')
  }
  linkOrCopy(database, previous)
  for (const side of ['-wal', '-shm']) if (existsSync(database + side)) renameSync(database + side, previous + side)
  return previous
}

function isSound(database: string): boolean {
  try {
    return structuralFault(database) === undefined
  } catch {
    return false
  }
}

/** Returns the files in a backup that were not removed, so that their bytes can be copied beside it. */
export function storedFilesIn(path: string): Pick<FileRecord, 'id' | 'organizationId' | 'contentType'>[] {
  using copy = openAsIs(path, { readonly: true })
  return copy.query<FileRecord>`SELECT ${selected('id, organizationId, contentType')} FROM files WHERE removed_at IS NULL`.all()
}
