import type { Log } from '../core/log.ts'
import type { DeviceSnapshot } from '../core/models/fleet.ts'
import type { Model } from '../core/models/model.ts'
import { type KubernetesPool, type PoolSnapshot, type Pools, type PoolUse, poolsOf } from '../core/models/pools.ts'
import type { LaunchNeeds } from './launcher/launcher.ts'
import type { Memory } from './placement/memory.ts'
import type { openModelPlacement } from './placement/model-placement.ts'
import { openPoolMemory, type PoolMemory } from './placement/pool-memory.ts'
import { openPoolPlacement } from './placement/pool-placement.ts'
import type { openRefusedFiles } from './placement/refused-files.ts'
import type { OpenedPool } from './pool-launches.ts'
import { presetOf } from './presets/presets.ts'
import type { ModelState, Resident } from './residency/model-state.ts'
import type { DeviceCapacity } from './residency/place.ts'
import type { SandboxSupport } from './sandbox/level.ts'

/** What a launch in a cluster asks for besides its cards: cores for each, and main memory beside its model. */
const coresOfCard = 4
const hostBytes = 16 * 2 ** 30

/** The memory of the pools, and what their engines need. Without pools it is empty and does nothing. */
export async function openFleetPools(options: {
  opened: readonly OpenedPool[]
  settings: Pools
  local: ReturnType<typeof openModelPlacement>
  sandbox: SandboxSupport
  refused: Pick<ReturnType<typeof openRefusedFiles>, 'find'>
  models: () => readonly Model[]
  residents: () => readonly Resident[]
  log: Log
  /** Called when a pool was asked what it has: engines of an earlier server may be known by then. */
  asked: () => void
  /** Called when what the pools have has changed. */
  changed: () => void
}) {
  const { opened, settings, residents, log, asked, changed } = options
  const memories = await Promise.all(
    opened.map(({ name, settings: { kind }, capacity }) =>
      openPoolMemory({ pool: { name, wholeCards: kind !== 'ssh', capacity }, residents, log, asked, changed }),
    ),
  )
  const pools = new Map(memories.map(pool => [pool.name, pool]))
  const placements = openPoolPlacement({ ...options, pools, settings: () => settings })
  const inPool = (name: string) => residents().filter(({ placement }) => placement.pool === name)

  return {
    placements,
    capacities: (here: readonly DeviceCapacity[]): readonly DeviceCapacity[] =>
      memories.length === 0 ? here : [...here, ...memories.flatMap(pool => pool.capacities())],
    /** The memory by which an engine of the resident is started: that of its pool, or of this machine. */
    memoryOf: (
      { placement }: Pick<Resident, 'placement'>,
      here: Memory,
    ): Pick<PoolMemory, 'cores' | 'cardsOf' | 'sharesOfDevices' | 'visibleTo'> =>
      placement.pool === undefined ? here : (pools.get(placement.pool) ?? here),
    /** What a launch of the resident asks its pool for; undefined on this machine. */
    needsOf({ placement, devices, serves }: Resident): LaunchNeeds | undefined {
      if (placement.pool === undefined) return undefined
      const own = settings[placement.pool]
      const use = poolsOf(serves.model).find(({ pool }) => pool === placement.pool)
      const cards = placement.kind === 'gpu' ? devices.length : 0
      return {
        cards,
        cpus: coresOfCard * Math.max(1, cards),
        memoryBytes: Math.ceil(hostBytes + (cards === 0 ? placement.bytes : 0)),
        ...(own?.kind === 'kubernetes' && { image: imageOf(serves.model, use, own) }),
        maxMs: use?.timeLimit ?? (own?.kind === 'slurm' ? (own.time_limit ?? null) : null),
      }
    },
    /** Those of single machines: a cluster may have thousands, and chooses itself which an engine gets. */
    devices: (): Omit<DeviceSnapshot, 'paused'>[] => memories.flatMap(pool => (pool.wholeCards ? [] : pool.snapshot())),
    snapshot: (): PoolSnapshot[] =>
      memories.map(pool => {
        const { kind, cost_per_hour, max_cards, max_engines } = settings[pool.name]!
        const engines = inPool(pool.name)
        const cards = pool.capacities().filter(one => one.kind === 'gpu' && one.id !== pool.name).length
        const usedCards = new Set(engines.flatMap(one => (one.placement.kind === 'gpu' ? one.devices : []))).size
        return {
          name: pool.name,
          kind,
          cards,
          usedCards,
          engines: engines.length,
          maxCards: max_cards ?? null,
          maxEngines: max_engines ?? null,
          costPerHour: cost_per_hour ?? null,
          unknown: pool.unknown(),
        }
      }),
    /** The models whose place in a pool may have changed: those without an engine are sized again. */
    toSize: (states: Iterable<ModelState>): string[] =>
      [...states].flatMap(({ model, residents: own }) =>
        model.enabled && model.pools !== undefined && own.length === 0 ? [model.id] : [],
      ),
    close(): void {
      for (const pool of memories) pool.close()
    },
  }
}

/** The image of the engine of a model in a pool: that of the model there, of the pool, or of its preset. */
function imageOf(model: Model, use: PoolUse | undefined, { images }: KubernetesPool): LaunchNeeds['image'] {
  const known = presetOf(model).image?.(model)
  const name = use?.image ?? images[model.engine] ?? known?.name
  return name === undefined ? undefined : { name, program: known?.program }
}

export type FleetPools = Awaited<ReturnType<typeof openFleetPools>>
