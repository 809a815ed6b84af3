import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { StoreRefusal } from '../refusal.ts'
import { openLockFile, sqliteCode } from './database.ts'
import { pathsIn } from './directory.ts'

/** The eraser holds the lock only while it unlinks some files. */
const maxWaitMs = 10_000

/**
 * Prevents every process from erasing result files until released: files named by a database that is read after this
 * call exist. For copies and checks. Ends with the process. Rejects with StoreRefusal.
 */
export async function holdResults(dataDir: string): Promise<Disposable> {
  const { resultsLock } = pathsIn(dataDir)
  // No server that erases results has ever run there.
  if (!existsSync(resultsLock)) return { [Symbol.dispose]: () => {} }
  const until = performance.now() + maxWaitMs
  for (;;) {
    const held = openLockFile(resultsLock, 0)
    try {
      held.exec('BEGIN')
      held.prepare('SELECT count(*) FROM sqlite_schema').get()
      return { [Symbol.dispose]: () => void held.close() }
    } catch (cause) {
      held.close()
      // Not waited for inside SQLite: the holder may be a task of this same thread.
      if (!isBusy(cause) || performance.now() > until)
        throw new StoreRefusal(74, `The results in ${dataDir} cannot be locked: ${(cause as Error).message}.`, cause)
    }
    await delay(20)
  }
}

const isBusy = (thrown: unknown): boolean => sqliteCode(thrown)?.startsWith('SQLITE_BUSY') === true

/** Runs `erase` while no other process holds the results. False: the results are held, and nothing was done. */
export async function whileUnlocked(dataDir: string, erase: () => Promise<void>): Promise<boolean> {
  const lock = openLockFile(pathsIn(dataDir).resultsLock, 0)
  try {
    lock.exec('BEGIN EXCLUSIVE')
    await erase()
    return true
  } catch (thrown) {
    if (!isBusy(thrown)) throw thrown
    return false
  } finally {
    lock.close()
  }
}
