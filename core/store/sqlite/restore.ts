import { chmodSync, copyFileSync, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StoreRefusal } from '../refusal.ts'
import { copyDatabase, verifyCopy } from './copy.ts'
import { type Connection, openDatabase, structuralFault } from './database.ts'
import { createPrivate, pathsIn, prepareDirectory, syncDirectory, takeInstanceLock } from './directory.ts'
import { exportResultFiles, keepResultsBeside, resultsIn } from './result-copies.ts'

/**
 * Makes an online copy of the database of a data directory, whether a server runs on it or not: from one moment,
 * verified after writing, 0600. Rejects with StoreRefusal. Other than `Store.backup` it works in the calling thread.
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
 * Puts a backup in the place of the database. The file is verified first; the swap is one rename, so that a crash
 * leaves the old database or the new one; the old one stays beside under the returned name. Rejects with StoreRefusal
 * while a server runs on the directory, and when the backup is damaged, foreign or newer than this program.
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
    // The copy and not the original: what is checked is what will be used, and the original is left untouched.
    onStep('verifying')
    verifyCopy(incoming, { file })
    const old = statSync(database).size > 0 ? resultsIn(results) : []
    // Back into WAL mode, in which it is read before a server has opened it.
    const next = openDatabase(incoming)
    const missing = exportResults(next, results, file)
    next.close()
    if (missing > 0)
      throw new StoreRefusal(
        65,
        `The backup ${file} is not usable: ${missing} results of jobs that it names are not in ${resultsBeside(file)}. Use another backup.`,
      )
    const copied = await open(incoming, 'r+')
    await copied.sync()
    await copied.close()
    onStep('swapping')
    // The next server sweeps what its database does not name; the one that stays beside still wants it.
    keepResultsBeside(results, old, resultsBeside(aside))
    const previous = moveAside(database, aside)
    renameSync(incoming, database)
    syncDirectory(dataDir)
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

/** Where the large results of a database lie that was set aside. A backup has them inside. */
const resultsBeside = (database: string): string => `${database}.results`

/** Writes the large results to files, all of them or none named: a crash leaves files that the next start sweeps. */
const exportResults = (next: Connection, results: string, file: string): number =>
  next.transaction(() => exportResultFiles(next, results, [resultsBeside(file), pathsIn(dirname(file)).results]))()

/**
 * Gives the old database a second name beside. Its WAL must not survive the swap: SQLite would play the old frames
 * into the new database. A sound database takes it in first; of a damaged one it is kept under the second name too.
 */
function moveAside(database: string, previous: string): string | null {
  if (statSync(database).size === 0) return null
  if (isSound(database)) {
    const old = openDatabase(database)
    old.pragma('wal_checkpoint(TRUNCATE)')
    old.close()
  }
  try {
    linkSync(database, previous)
  } catch {
    // A file system without hard links.
    copyFileSync(database, previous)
  }
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
