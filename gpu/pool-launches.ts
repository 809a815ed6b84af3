import { Failure } from '../core/failure.ts'
import type { Log } from '../core/log.ts'
import type { PoolSettings, Pools } from '../core/models/pools.ts'
import type { Discovery } from './devices/device.ts'
import type { Launcher } from './launcher/launcher.ts'
import { type Launches, openLaunches } from './launcher/launches.ts'
import type { EngineOutputs } from './launcher/outputs.ts'
import { serverIdIn } from './server-id.ts'

/** What the launcher of a pool is opened with. `serverId`: names this data directory among all that use the pool. */
export interface PoolLauncherOptions<Settings extends PoolSettings = PoolSettings> {
  pool: string
  settings: Settings
  dataDir: string
  serverId: string
  /** The environment of the server. */
  host: Readonly<Record<string, string | undefined>>
  log: Log
}
export type OpenPoolLauncher = (options: PoolLauncherOptions) => Promise<Launcher>

/** A pool whose launcher is opened as soon as that works. */
export interface OpenedPool {
  name: string
  settings: PoolSettings
  /** Undefined while it could not be opened. */
  launches: () => Launches | undefined
  /** What it has; opens it first, if it is not. Rejects where that is not known. */
  capacity: (signal: AbortSignal) => Promise<Discovery>
}

/** Opens each pool. One that cannot be opened is tried again whenever it is asked what it has. */
export async function openPools(options: {
  pools: Pools
  openLauncher: OpenPoolLauncher
  dataDir: string
  host: PoolLauncherOptions['host']
  outputs: EngineOutputs
  log: Log
}): Promise<OpenedPool[]> {
  const { pools, openLauncher, dataDir, host, outputs, log } = options
  const names = Object.entries(pools)
  if (names.length === 0) return []
  const serverId = serverIdIn(dataDir, log)

  return await Promise.all(
    names.map(async ([name, settings]): Promise<OpenedPool> => {
      let opened: { launcher: Launcher; launches: Launches } | undefined
      let opening: Promise<void> | undefined
      const open = (): Promise<void> =>
        (opening ??= (async () => {
          const launcher = await openLauncher({ pool: name, settings, dataDir, serverId, host, log })
          opened = { launcher, launches: await openLaunches({ launcher, outputs, log, pool: name }) }
        })().finally(() => (opening = undefined)))
      await open().catch((thrown: unknown) => log.warn('A pool cannot be opened yet', { pool: name }, thrown))
      return {
        name,
        settings,
        launches: () => opened?.launches,
        async capacity(signal) {
          if (!opened) await open()
          return await opened!.launcher.capacity(signal)
        },
      }
    }),
  )
}

/** Failure of a start in a pool that could not be opened. */
export const poolNotOpen = (pool: string): Failure =>
  new Failure('worker_error', `The pool '${pool}' cannot be used now.`)
