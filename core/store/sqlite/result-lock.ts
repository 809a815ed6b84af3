import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { StoreRefusal } from '../refusal.ts'
import { openLockFile, sqliteCode } from './database.ts'
import { pathsIn } from './directory.ts'

/** Whoever erases holds it for the time of some unlinks. */
const patienceMs = 10_000

/**
 * From now on until it is released no file of a result goes, in whatever process: what a database names that is looked
 * at after this call is there. For copies and checks. Ends with the process. Rejects with StoreRefusal.
 */
export async function holdResults(dataDir: string): Promise<Disposable> {
  const { resultsLock } = pathsIn(dataDir)
  // No server that erases anything has ever run there.
  if (!existsSync(resultsLock)) return { [Symbol.dispose]: () => {} }
  const until = performance.now() + patienceMs
  for (;;) {
    const held = openLockFile(resultsLock, 0)
    try {
      held.exec('BEGIN')
      held.prepare('SELECT count(*) FROM sqlite_schema').get()
      return { [Symbol.dispose]: () => void held.close() }
    } catch (cause) {
      held.close()
      // Not waited for inside SQLite: who holds it may be the thread that waits.
      if (!isBusy(cause) || performance.now() > until)
        throw new StoreRefusal(74, `The results in ${dataDir} cannot be held: ${(cause as Error).message}.`, cause)
    }
    await delay(20)
  }
}

const isBusy = (thrown: unknown): boolean => sqliteCode(thrown)?.startsWith('SQLITE_BUSY') === true

/** Runs `erase` while nobody holds the results. False: somebody does, and nothing was done. */
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
