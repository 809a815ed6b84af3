import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  statSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { Failure } from '../../failure.ts'
import { StoreRefusal } from '../refusal.ts'
import { type Connection, openLockFile, sqliteCode } from './database.ts'

/** The paths in a data directory. */
export const pathsIn = (dataDir: string) => ({
  database: join(dataDir, 'infer.db'),
  lock: join(dataDir, 'instance.lock'),
  ballast: join(dataDir, 'ballast'),
  backups: join(dataDir, 'backups'),
  results: join(dataDir, 'results'),
  resultsLock: join(dataDir, 'results.lock'),
})

/**
 * Creates the data directory (0700), its results folder and an empty database file (0600; SQLite gives its side files
 * the same mode) if they are missing. Refuses a directory that others can write to: anyone who can replace files
 * there owns every token.
 */
export function prepareDirectory(dataDir: string): void {
  try {
    // A recursive mkdir below these never returns in Node 24.
    if (/^\/(proc|sys)(\/|$)/.test(resolve(dataDir))) throw new Error('it is in a file system of the kernel')
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const { mode } = statSync(dataDir)
    if (mode & 0o022)
      throw new StoreRefusal(
        64,
        `Others can write to the data directory ${dataDir} (mode ${(mode & 0o777).toString(8)}). Run: chmod 700 ${dataDir}`,
      )
    createPrivate(pathsIn(dataDir).lock)
    createPrivate(pathsIn(dataDir).database)
    createPrivate(pathsIn(dataDir).resultsLock)
    if (mkdirSync(pathsIn(dataDir).results, { recursive: true, mode: 0o700 }) !== undefined) syncNow(dataDir)
  } catch (cause) {
    if (cause instanceof StoreRefusal) throw cause
    throw new StoreRefusal(
      74,
      `The data directory ${dataDir} cannot be used: ${(cause as Error).message}. Choose another with --data-dir.`,
      cause,
    )
  }
}

/**
 * Creates the file with mode 0600 unless it exists. An existing file is never opened here: closing any descriptor of a
 * file drops all locks that this process holds on it, including SQLite's.
 */
export function createPrivate(path: string): void {
  if (existsSync(path)) {
    if (statSync(path).mode & 0o077) chmodSync(path, 0o600)
    return
  }
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
  }
}

/** Links a file, or copies it on a file system without hard links. */
export function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}

/** Makes a file, or a rename or a new file in a directory, survive power loss. */
export function syncNow(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Takes the lock that makes this the only server of the data directory: an exclusive SQLite lock on `instance.lock`,
 * which the end of the process always releases. Refuses with exit code 64 after `maxWaitMs` (a CLI command may hold it
 * during a migration).
 */
export function takeInstanceLock(dataDir: string, maxWaitMs = 300) {
  let held: Connection | undefined
  try {
    held = openLockFile(pathsIn(dataDir).lock, maxWaitMs)
    // With this mode the lock outlives a COMMIT, so that `markCreated` leaves no gap for another server.
    held.pragma('locking_mode = EXCLUSIVE')
    held.exec('BEGIN EXCLUSIVE')
    const lock = held
    const created = lock.pragma('user_version', { simple: true }) === 1
    return {
      /** Whether a database was ever created there. */
      created,
      /** Records that there is a database, so that an emptied file is not taken for a first start. */
      markCreated() {
        if (lock.pragma('user_version', { simple: true }) === 1) return
        try {
          lock.exec('PRAGMA user_version = 1; COMMIT; BEGIN EXCLUSIVE')
        } catch (cause) {
          throw new StoreRefusal(
            74,
            `The data directory ${dataDir} cannot be written: ${(cause as Error).message}.`,
            cause,
          )
        }
      },
      release: () => void lock.close(),
    }
  } catch (cause) {
    held?.close()
    if (sqliteCode(cause)?.startsWith('SQLITE_BUSY'))
      throw new StoreRefusal(
        64,
        `Another infer is running on the data directory ${dataDir}. Stop it, or choose another directory with --data-dir.`,
        cause,
      )
    if (sqliteCode(cause) === 'SQLITE_NOTADB' || sqliteCode(cause) === 'SQLITE_CORRUPT')
      throw new StoreRefusal(
        65,
        `The file ${pathsIn(dataDir).lock} is damaged. It holds no data: remove it and start again.`,
        cause,
      )
    if (cause instanceof Failure) throw cause
    throw new StoreRefusal(74, `The data directory ${dataDir} cannot be locked: ${(cause as Error).message}.`, cause)
  }
}
/** The exclusive right to serve a data directory. */
export type InstanceLock = ReturnType<typeof takeInstanceLock>
