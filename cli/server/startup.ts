import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { openJournal } from '../../core/journal.ts'
import type { Log } from '../../core/log.ts'
import { readConfig } from '../../core/models/config.ts'
import { openSqliteStore, type PreparedStore, prepareSqliteStore } from '../../core/store/sqlite/store.ts'
import { traitsOf } from '../../gpu/presets/presets.ts'
import type { Predecessor } from '../takeover/predecessor.ts'

export interface AppOptions {
  dataDir: string
  configPath: string | undefined
  listen: string | undefined
  drainTimeoutMs: number | undefined
  /** Use HTTPS, with this key pair or, without one, with a self-signed pair in the data directory. */
  https?: { files: { cert: string; key: string } | undefined } | undefined
  /** Thread for the store, if it was started while the program was loading. */
  storeThread?: Worker
  /** The running server whose place this one takes. */
  predecessor?: Predecessor | undefined
  log: Log
}

/**
 * The first part of a start: reads and checks the configuration, and opens the store in its thread, which works while
 * the rest of the program loads. This file imports little, so that it does not wait for that rest. Throws Failure for
 * an invalid configuration; `store` rejects with StoreRefusal. With a predecessor it checks the database and prepares to open it:
 * `prepared` rejects with StoreRefusal. It opens the store once that server has handed over.
 */
export function beginStartup(options: AppOptions) {
  const { dataDir, configPath, listen, storeThread, predecessor, log: written } = options
  const { log, journal } = openJournal(written)
  const path = configPath ?? join(dataDir, 'infer.yaml')
  const file = readConfig(path, configPath !== undefined, traitsOf)
  const config = { ...file, listen: listen ?? file.listen }
  const ended = Promise.withResolvers<{ exitCode: number }>()
  const prepared = predecessor && prepareSqliteStore({ dataDir, thread: storeThread })
  const openStore = (ahead?: PreparedStore) =>
    openSqliteStore({
      dataDir,
      prepared: ahead,
      thread: storeThread,
      log,
      minFreeBytes: config.limits.min_free_disk,
      ballastBytes: config.limits.ballast,
      onFatal(failure, exitCode) {
        log.error('The server stops because the store failed', {}, failure)
        ended.resolve({ exitCode })
      },
    })
  const handedOver = async () => {
    const ahead = await prepared
    await predecessor!.handedOver
    const opened = await openStore(ahead)
    predecessor!.reached('store')
    return opened
  }
  const store = predecessor ? handedOver() : openStore()
  // Prevents an unhandled rejection; the caller that awaits `store` gets the error.
  store.catch(() => {})
  return { path, file, config, log, journal, prepared, store, ended }
}
export type Startup = ReturnType<typeof beginStartup>
