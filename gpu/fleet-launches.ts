import type { Pools } from '../core/models/pools.ts'
import { type Launches, openLaunches } from './launcher/launches.ts'
import { type LocalLauncherOptions, openLocalLauncher } from './launcher/local.ts'
import { openOutputs } from './launcher/outputs.ts'
import { openUpstreamLauncher } from './launcher/upstream.ts'
import { type OpenPoolLauncher, openPools, poolNotOpen } from './pool-launches.ts'

/** Follows the engines of this machine, those of its pools, and those that run elsewhere and are only called. */
export async function openFleetLaunches(
  options: LocalLauncherOptions & { pools: Pools; openPoolLauncher: OpenPoolLauncher },
) {
  const { log } = options
  const outputs = openOutputs()
  const launcher = await openLocalLauncher(options)
  const pools = openPools({ ...options, openLauncher: options.openPoolLauncher, outputs })
  const [local, upstreams] = await Promise.all([
    openLaunches({ launcher, outputs, log }),
    openLaunches({ launcher: openUpstreamLauncher(), outputs, pool: 'elsewhere', log }),
    ...Object.entries(options.pools).map(([name, settings]) => pools.open(name, settings).first),
  ])
  const started = () => [local, ...pools.launches()]
  return {
    outputs,
    pools,
    /** Those that infer starts, here and in pools. */
    launches: {
      left: () => started().flatMap(one => one.left()),
      adopt: (launchId: string) => first(started(), one => one.adopt(launchId)),
      async stop(launchId: string, graceMs: number): Promise<void> {
        await Promise.all(started().map(one => one.stop(launchId, graceMs)))
      },
      /** Lets go of those of pools, and with a keeper of those here; without one those here stay followed until `close`. */
      async leave(): Promise<void> {
        const here = options.keeper ? local.leave() : launcher.leave()
        await Promise.all([here, ...pools.launches().map(one => one.leave())])
      },
      /** Whether those of the pool, undefined for this machine, outlive a server that has left. */
      outlives: (pool: string | undefined): boolean => pool !== undefined || options.keeper !== undefined,
    },
    /** Follows the engines of a pool; without one, those of this machine. Throws Failure `worker_error`. */
    launchesIn: (pool: string | undefined): Launches => {
      if (pool === undefined) return local
      const own = pools.find(pool)?.launches()
      if (!own) throw poolNotOpen(pool)
      return own
    },
    upstreams,
    /** Whether processes of an earlier run were ended. */
    hasSwept: launcher.swept.ended > 0,
    async close(): Promise<void> {
      await Promise.all([...started(), upstreams].map(one => one.close()))
    },
  }
}

function first<One, Found>(all: readonly One[], find: (one: One) => Found | undefined): Found | undefined {
  for (const one of all) {
    const found = find(one)
    if (found !== undefined) return found
  }
  return undefined
}
