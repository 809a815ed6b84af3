import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../core/log.ts'
import type { DeviceSnapshot } from '../core/models/fleet.ts'
import type { Model } from '../core/models/model.ts'
import { type PoolSettings, type PoolSnapshot, type Pools, poolsOf } from '../core/models/pools.ts'
import { nodesOf } from '../core/models/spanned-nodes.ts'
import { durationText } from '../core/quantity-text.ts'
import type { Clock } from './clock.ts'
import { launchNeeds } from './launcher/launch-needs.ts'
import type { LaunchNeeds } from './launcher/launcher.ts'
import type { Memory } from './placement/memory.ts'
import type { openModelPlacement } from './placement/model-placement.ts'
import { openPoolMemory, type PoolMemory } from './placement/pool-memory.ts'
import { openPoolPlacement } from './placement/pool-placement.ts'
import type { openRefusedFiles } from './placement/refused-files.ts'
import type { OpenedPool, PoolSet } from './pool-launches.ts'
import type { CountedEngine } from './pool-use.ts'
import { openPoolUse } from './pool-use-count.ts'
import { imageOf } from './presets/model-image.ts'
import type { Backend } from './presets/preset.ts'
import type { ModelState, Resident } from './residency/model-state.ts'
import type { DeviceCapacity } from './residency/place.ts'
import type { SandboxSupport } from './sandbox/level.ts'

/** Milliseconds between two looks whether the engines of a pool have ended that is removed or changed. */
const lookMs = 250

/** Milliseconds in which a removed pool that does not answer may still end its engines. */
const removedAnswerMs = 5_000

/** The memory of the pools, and what their engines need. Without pools it is empty and does nothing. */
export async function openFleetPools(options: {
  /** Those at the start are opened already. */
  opened: PoolSet
  settings: Pools
  local: ReturnType<typeof openModelPlacement>
  sandbox: SandboxSupport
  refused: Pick<ReturnType<typeof openRefusedFiles>, 'find'>
  models: () => readonly Model[]
  residents: () => readonly Resident[]
  /** Whether the engine waits for a machine. */
  waits: (resident: Resident) => boolean
  dataDir: string
  clock: Clock
  log: Log
  /** Called when a pool was asked what it has: engines of an earlier server may be known by then. */
  asked: () => void
  /** Called when what the pools have has changed; `how` after new settings. `drains`: other engines than before must end. */
  changed: (how?: { drains: boolean }) => void
}) {
  const { opened, residents, clock, log, asked, changed } = options
  let settings = options.settings
  const memories = new Map<string, PoolMemory>()
  /** The pools that are used no more as they are open, and why, as the end of a sentence. */
  const leaving = new Map<string, string>()
  /** Removed pools that do not answer, with engines that are to end: since when, by the fleet's clock. */
  const silentSince = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  /** The pool that is being closed. */
  let closing: string | undefined
  const inPool = (name: string) => residents().filter(({ placement }) => placement.pool === name)

  /** The engines of a pool with their GPUs, for the limits of the month. */
  function countedIn(name: string): CountedEngine[] {
    const engines = inPool(name).filter(({ placement }) => placement.kind === 'gpu')
    const users = new Map<string, number>()
    for (const id of engines.flatMap(({ devices }) => devices)) users.set(id, (users.get(id) ?? 0) + 1)
    return engines.map(one => ({
      engineId: one.engineId,
      cards: one.devices.reduce((sum, id) => sum + 1 / users.get(id)!, 0),
      since: one.launchedAt === null || options.waits(one) ? null : clock.epoch() - (clock.now() - one.launchedAt),
    }))
  }
  const use = openPoolUse({
    dataDir: options.dataDir,
    settings: () => settings,
    engines: countedIn,
    clock,
    log,
    changed: () => changed({ drains: true }),
  })

  function hold({ name, settings: { kind }, capacity, watch }: OpenedPool): PoolMemory {
    const pool = { name, wholeCards: kind !== 'ssh', capacity, watch }
    const memory = openPoolMemory({ pool, residents, log, asked, changed: () => changed() })
    memories.set(name, memory)
    return memory
  }

  await Promise.all(Object.keys(settings).map(name => hold(opened.find(name)!).first))
  const placements = openPoolPlacement({ ...options, pools: memories, settings: () => settings })

  /**
   * Whether a removed pool is closed although it has engines: they have no requests any more, and for a while nobody there has
   * answered that they are to end. One that was changed is waited for: its engines would be there beside the new ones.
   */
  function isGivenUp(name: string): boolean {
    const stopping = inPool(name).every(({ state, leases }) => state === 'stopping' && leases === 0)
    if (Object.hasOwn(settings, name) || !stopping || memories.get(name)?.unknown() == null) {
      silentSince.delete(name)
      return false
    }
    const since = silentSince.get(name) ?? clock.now()
    silentSince.set(name, since)
    return clock.now() - since >= removedAnswerMs
  }

  function sayWhatIsLeft(name: string): void {
    const engines = inPool(name).map(({ engineId }) => engineId)
    if (engines.length === 0) return
    const grace = durationText(opened.find(name)!.settings.orphan_grace)
    log.warn(
      `A removed pool does not answer, so its engines could not be ended. Those that still run there end by themselves after its orphan_grace, ${grace} after this server last asked them.`,
      { pool: name, engines: engines.join(', '), reason: memories.get(name)?.unknown() ?? '' },
    )
  }

  /** Closes the pools that are left by all of their engines, and opens those that were changed again. */
  async function closeLeft(): Promise<void> {
    clearTimeout(timer)
    if (closing !== undefined) return
    for (const name of leaving.keys()) {
      if (inPool(name).length > 0 && !isGivenUp(name)) continue
      sayWhatIsLeft(name)
      closing = name
      memories.get(name)?.close()
      await opened
        .close(name)
        .catch((thrown: unknown) => log.warn('A pool could not be closed in order', { pool: name }, thrown))
      closing = undefined
      if (isClosed) return
      memories.delete(name)
      leaving.delete(name)
      silentSince.delete(name)
      log.info('A pool is closed', { pool: name })
      const again = Object.hasOwn(settings, name) ? settings[name] : undefined
      if (again) hold(opened.open(name, again))
      changed()
    }
    if (leaving.size === 0 || isClosed) return
    timer = setTimeout(() => void closeLeft(), lookMs)
    timer.unref()
  }

  /** Engines without a GPU count for no limit of the month. */
  function pausesOf(pool: string): (device: DeviceCapacity) => Pick<DeviceCapacity, 'pause'> {
    const reason = leaving.get(pool)
    if (reason !== undefined) return () => ({ pause: { endsInMs: null, text: reason } })
    const reached = use.limitReached(pool)
    const pause = reached && { endsInMs: reached.endsInMs, text: `is in the pool '${pool}'`, ofPool: reached.text }
    return ({ kind }) => (pause && kind === 'gpu' ? { pause } : {})
  }

  function leavingText({ name, unknown }: PoolMemory): string {
    const fault = unknown()
    const change = Object.hasOwn(settings, name) ? 'changed in' : 'removed from'
    return `It was ${change} infer.yaml, and its engines end first.${fault === null ? '' : ` It does not answer: ${fault}`}`
  }

  return {
    placements,
    capacities: (here: readonly DeviceCapacity[]): readonly DeviceCapacity[] =>
      memories.size === 0
        ? here
        : [
            ...here,
            ...[...memories.values()].flatMap(pool => {
              const pauseOf = pausesOf(pool.name)
              return pool.capacities().map(device => ({ ...device, ...pauseOf(device) }))
            }),
          ],
    /**
     * Follows a change of `pools` in infer.yaml. Pools that are new are opened; those that are removed, or reached in another way,
     * get no engine any more, and are closed when their engines have ended, the latter to be opened again. Limits and the cost
     * change at once.
     */
    reconfigured(next: Pools): void {
      if (isDeepStrictEqual(next, settings)) return
      settings = next
      const before = new Map(leaving)
      for (const name of memories.keys()) {
        // What is being closed opens again by the settings of then.
        if (name === closing) continue
        const own = Object.hasOwn(next, name) ? next[name] : undefined
        if (own && isDeepStrictEqual(reachOf(own), reachOf(opened.find(name)!.settings))) {
          leaving.delete(name)
          // Removed once more, it gets the whole time again.
          silentSince.delete(name)
        } else
          leaving.set(name, own ? 'is in a pool that opens again when its engines have ended' : 'is in a removed pool')
      }
      for (const [name, own] of Object.entries(next)) if (!memories.has(name)) hold(opened.open(name, own))
      changed({ drains: !isDeepStrictEqual(before, leaving) })
      use.count()
      void closeLeft()
    },
    /** Begins to count what engines use, when those of an earlier server are known. */
    begin: use.count,
    /** An engine has ended; those of this machine are not counted. */
    ended({ placement, engineId }: Resident): void {
      if (placement.pool !== undefined) use.ended(placement.pool, engineId)
    },
    /** The memory by which an engine of the resident is started: that of its pool, or of this machine. */
    memoryOf: (
      { placement }: Pick<Resident, 'placement'>,
      here: Memory,
    ): Pick<PoolMemory, 'cores' | 'cardsOf' | 'sharesOfDevices' | 'visibleTo'> =>
      placement.pool === undefined ? here : (memories.get(placement.pool) ?? here),
    /** The same of the backends of the built-in engine. */
    backendOf: (
      { placement }: Pick<Resident, 'placement'>,
      here: (model: Model) => Backend | null,
    ): ((model: Model) => Backend | null) =>
      placement.pool === undefined ? here : model => memories.get(placement.pool!)?.backendFor(model) ?? null,
    /** What a launch of the resident asks its pool for; undefined on this machine. */
    needsOf({ placement, devices, serves }: Resident): LaunchNeeds | undefined {
      if (placement.pool === undefined) return undefined
      const own = settings[placement.pool]
      const use = poolsOf(serves.model).find(({ pool }) => pool === placement.pool)
      const nodes = nodesOf(serves.model)
      const cards = placement.kind === 'gpu' ? devices.length / nodes : 0
      const maxMs = use?.timeLimit ?? (own?.kind === 'slurm' ? (own.time_limit ?? null) : null)
      const needs = launchNeeds(cards, cards === 0 ? placement.bytes : 0, maxMs, nodes)
      return own?.kind === 'kubernetes' ? { ...needs, image: imageOf(serves.model, use, own) } : needs
    },
    /** Those of single machines: a cluster may have thousands, and chooses itself which an engine gets. */
    devices: (): Omit<DeviceSnapshot, 'paused'>[] =>
      [...memories.values()].flatMap(pool => (pool.wholeCards ? [] : pool.snapshot())),
    snapshot: (): PoolSnapshot[] =>
      [...memories.values()].map(pool => {
        const own = settings[pool.name] ?? opened.find(pool.name)!.settings
        const { cardHours, cost } = use.of(pool.name)
        const engines = inPool(pool.name)
        const cards = pool.capacities().filter(one => one.kind === 'gpu' && one.id !== pool.name).length
        const usedCards = new Set(engines.flatMap(one => (one.placement.kind === 'gpu' ? one.devices : []))).size
        const left = leaving.get(pool.name)
        return {
          name: pool.name,
          kind: own.kind,
          cards,
          usedCards,
          engines: engines.length,
          maxCards: own.max_cards ?? null,
          maxEngines: own.max_engines ?? null,
          costPerHour: own.cost_per_hour ?? null,
          usedCardHours: cardHours,
          usedCost: cost,
          monthlyCardHoursLimit: own.monthly_card_hours_limit ?? null,
          monthlyCostLimit: own.monthly_cost_limit ?? null,
          limitReached: use.limitReached(pool.name)?.text ?? null,
          unknown: left === undefined ? pool.unknown() : leavingText(pool),
        }
      }),
    /** The models whose place in a pool may have changed: those without an engine or a layout there, or with new limits all. */
    toSize: (states: Iterable<ModelState>, hasNewLimits: boolean): string[] =>
      [...states].flatMap(({ model, placement, residents: own }) =>
        model.enabled &&
        model.pools !== undefined &&
        (hasNewLimits || own.length === 0 || placements.isOutdated(placement))
          ? [model.id]
          : [],
      ),
    close(): void {
      isClosed = true
      clearTimeout(timer)
      use.close()
      for (const pool of memories.values()) pool.close()
    },
  }
}

export type FleetPools = Awaited<ReturnType<typeof openFleetPools>>

/** The settings of a pool that its launcher does not read: they take effect at once. */
const limitKeys = new Set([
  'max_cards',
  'max_engines',
  'cost_per_hour',
  'monthly_card_hours_limit',
  'monthly_cost_limit',
])

/** The settings of a pool that its launcher has read when it was opened. */
const reachOf = (settings: PoolSettings): object =>
  Object.fromEntries(Object.entries(settings).filter(([key]) => !limitKeys.has(key)))
