import type { Log } from '../../core/log.ts'
import type { Config } from '../../core/models/config.ts'
import { startFronts } from '../../server/fronts/fronts.ts'
import { type HttpsOptions, openServer, type Server } from '../../server/server.ts'
import type { Predecessor } from '../takeover/predecessor.ts'

/**
 * Opens the HTTP server at once; after a predecessor only when `listen` is called, as the last part of the start, so that no
 * connection waits for it. `listening` then resolves with undefined once the predecessor has handed over.
 */
export function beginListening({
  config,
  dataDir,
  https,
  predecessor,
  machine,
  log,
}: {
  config: Config
  dataDir: string
  https: HttpsOptions | undefined
  predecessor: Predecessor | undefined
  /** What the start needs besides, before a predecessor may hand over. */
  machine: Promise<unknown>
  log: Log
}): { listening: Promise<Server | undefined>; listen: () => Promise<Server> } {
  const { gateway_processes: count } = config
  const inherited = predecessor && { ...predecessor.inherited, dataDir }
  const started = inherited && count > 1 ? startFronts(count, inherited.sockets) : undefined
  const gateway = count > 1 ? { dataDir, started } : undefined
  const listen = () => openServer({ config, log, https, gateway, inherited })
  const listening = predecessor ? Promise.all([machine, started?.loaded]).then(() => predecessor.prepared()) : listen()
  return { listening, listen }
}
