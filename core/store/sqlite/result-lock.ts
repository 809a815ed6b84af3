import { existsSync } from 'node:fs'
import { StoreRefusal } from '../refusal.ts'
import { openLockFile, sqliteCode } from './database.ts'
import { placesIn } from './directory.ts'

/** One that erases holds it for the time of some unlinks. */
const patienceMs = 10_000

/**
 * From now on until it is released no file of a result goes, in whatever process: what a database names that is looked
 * at after this call is there. For copies and checks. Ends with the process. Throws StoreRefusal.
 */
export function holdResults(dataDir: string): Disposable {
  const { resultsLock } = placesIn(dataDir)
  // No server that erases anything has ever run there.
  if (!existsSync(resultsLock)) return { [Symbol.dispose]: () => {} }
  const held = openLockFile(resultsLock, patienceMs)
  try {
    held.exec('BEGIN')
    held.prepare('SELECT count(*) FROM sqlite_schema').get()
  } catch (cause) {
    held.close()
    throw new StoreRefusal(74, `The results in ${dataDir} cannot be held: ${(cause as Error).message}.`, cause)
  }
  return { [Symbol.dispose]: () => void held.close() }
}

/** Runs `erase` while nobody holds the results. False: somebody does, and nothing was done. */
export async function whileNobodyHolds(dataDir: string, erase: () => Promise<void>): Promise<boolean> {
  const lock = openLockFile(placesIn(dataDir).resultsLock, 0)
  try {
    lock.exec('BEGIN EXCLUSIVE')
    await erase()
    return true
  } catch (thrown) {
    if (!sqliteCode(thrown)?.startsWith('SQLITE_BUSY')) throw thrown
    return false
  } finally {
    lock.close()
  }
}
