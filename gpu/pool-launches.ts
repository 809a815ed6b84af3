import { Failure } from '../core/failure.ts'
import type { Log } from '../core/log.ts'
import type { PoolSettings } from '../core/models/pools.ts'
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
  /** Resolves after the first attempt to open it. */
  first: Promise<void>
  /** Undefined while it could not be opened. */
  launches: () => Launches | undefined
  /** What it has; opens it first, if it is not. Rejects where that is not known. */
  capacity: (signal: AbortSignal) => Promise<Discovery>
  /** Calls the listener when its launcher says that something has changed. */
  watch: (listener: () => void) => void
}

/** Owns the launchers of the pools. One that cannot be opened is tried again whenever it is asked what it has. */
export function openPools(options: {
  openLauncher: OpenPoolLauncher
  dataDir: string
  host: PoolLauncherOptions['host']
  outputs: EngineOutputs
  log: Log
}) {
  const { openLauncher, dataDir, host, outputs, log } = options
  const pools = new Map<string, OpenedPool & { close(): Promise<void> }>()
  let serverId: string | undefined

  function open(name: string, settings: PoolSettings) {
    let opened: { launcher: Launcher; launches: Launches } | undefined
    let opening: Promise<void> | undefined
    let isClosed = false
    const listeners: (() => void)[] = []
    const openOnce = (): Promise<void> =>
      (opening ??= (async () => {
        if (isClosed) throw poolNotOpen(name)
        serverId ??= serverIdIn(dataDir, log)
        const launcher = await openLauncher({ pool: name, settings, dataDir, serverId, host, log })
        opened = { launcher, launches: await openLaunches({ launcher, outputs, log, pool: name }) }
        launcher.watch(() => listeners.forEach(listener => listener()))
        if (isClosed) await opened.launches.close()
      })().finally(() => (opening = undefined)))
    const first = openOnce().catch((thrown: unknown) => log.warn('A pool cannot be opened yet', { pool: name }, thrown))
    return {
      name,
      settings,
      first,
      launches: () => opened?.launches,
      async capacity(signal: AbortSignal) {
        if (!opened) await openOnce()
        return await opened!.launcher.capacity(signal)
      },
      watch: (listener: () => void): void => void listeners.push(listener),
      async close(): Promise<void> {
        isClosed = true
        await opening?.catch(() => {})
        await opened?.launches.close()
      },
    }
  }

  return {
    /** Those that are open. */
    launches: (): Launches[] => [...pools.values()].flatMap(pool => pool.launches() ?? []),
    find: (name: string): OpenedPool | undefined => pools.get(name),
    /** Begins to open a pool; its name must be free. */
    open(name: string, settings: PoolSettings): OpenedPool {
      const pool = open(name, settings)
      pools.set(name, pool)
      return pool
    },
    /** Ends what is left of the engines of a pool, and frees its name, also where its launcher fails. */
    async close(name: string): Promise<void> {
      try {
        await pools.get(name)?.close()
      } finally {
        pools.delete(name)
      }
    },
  }
}
export type PoolSet = ReturnType<typeof openPools>

/** Failure of a start in a pool that could not be opened. */
export const poolNotOpen = (pool: string): Failure =>
  new Failure('worker_error', `The pool '${pool}' cannot be used now.`)
