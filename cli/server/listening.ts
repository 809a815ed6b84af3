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
  needed,
  log,
}: {
  config: Config
  dataDir: string
  https: HttpsOptions | undefined
  predecessor: Predecessor | undefined
  /** What the start needs besides, before a predecessor may hand over. */
  needed: readonly (Promise<unknown> | undefined)[]
  log: Log
}): { listening: Promise<Server | undefined>; listen: () => Promise<Server> } {
  const { gateway_processes: count } = config
  if (!https && config.trusted_proxies.length === 0 && !/^(127\.|localhost:|\[::1\]:)/.test(config.listen))
    log.warn(
      `Other machines can reach ${config.listen}, which uses unencrypted HTTP: start with --https, or put a proxy with TLS before it`,
    )
  const inherited = predecessor && { ...predecessor.inherited, dataDir }
  const started = inherited && count > 1 ? startFronts(count, inherited.sockets) : undefined
  const gateway = count > 1 ? { dataDir, started } : undefined
  const listen = async () => {
    predecessor?.reached('jobs')
    const server = await openServer({ config, log, https, gateway, inherited })
    predecessor?.reached('socket')
    return server
  }
  const listening = predecessor
    ? Promise.all([...needed, started?.loaded]).then(() => predecessor.prepared())
    : listen()
  return { listening, listen }
}
