import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { openJournal } from '../core/journal.ts'
import type { Log } from '../core/log.ts'
import { readConfig } from '../core/models/config.ts'
import { openSqliteStore } from '../core/store/sqlite/store.ts'
import { traitsOf } from '../gpu/presets/presets.ts'

export interface AppOptions {
  dataDir: string
  configPath: string | undefined
  listen: string | undefined
  drainTimeoutMs: number | undefined
  /** Speak HTTPS, with this key pair where it is given; with a self-signed one that the data directory keeps where not. */
  https?: { files: { cert: string; key: string } | undefined } | undefined
  /** For the store, where it was started while the program was still being read. */
  storeThread?: Worker
  log: Log
}

/**
 * What a start does first: the configuration is read and checked, and the store opens, whose thread has its own work
 * for as long as it takes to read the rest of the program. Apart from that rest, so that it need not be there for it.
 * Throws Failure for a configuration that is wrong; `store` rejects with StoreRefusal.
 */
export function beginStartup({ dataDir, configPath, listen, storeThread, log: written }: AppOptions) {
  const { log, journal } = openJournal(written)
  const path = configPath ?? join(dataDir, 'infer.yaml')
  const file = readConfig(path, configPath !== undefined, traitsOf)
  const config = { ...file, listen: listen ?? file.listen }
  const ended = Promise.withResolvers<{ exitCode: number }>()
  const store = openSqliteStore({
    dataDir,
    thread: storeThread,
    log,
    minFreeBytes: config.limits.min_free_disk,
    ballastBytes: config.limits.ballast,
    onFatal(failure, exitCode) {
      log.error('The store failed, so the server stops rather than go on without it', {}, failure)
      ended.resolve({ exitCode })
    },
  })
  // Whoever goes on with it hears why it did not open.
  store.catch(() => {})
  return { path, file, config, log, journal, store, ended }
}
export type Startup = ReturnType<typeof beginStartup>
