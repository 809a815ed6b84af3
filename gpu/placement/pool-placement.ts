import type { Model } from '../../core/models/model.ts'
import { localPool, type Pools, type PoolUse, poolsOf } from '../../core/models/pools.ts'
import { nodesOf } from '../../core/models/spanned-nodes.ts'
import { presetOf } from '../presets/presets.ts'
import type { ModelState } from '../residency/model-state.ts'
import type { PoolLayout } from '../residency/place.ts'
import type { SandboxSupport } from '../sandbox/level.ts'
import { type LearnedMemory, openModelPlacement, slotsFor } from './model-placement.ts'
import type { PoolMemory } from './pool-memory.ts'
import type { openRefusedFiles } from './refused-files.ts'

type Placement = ModelState['placement']
type Local = ReturnType<typeof openModelPlacement>

/** Sizes models for each pool that they may use. */
export function openPoolPlacement(options: {
  /** Of this machine. */
  local: Local
  pools: ReadonlyMap<string, PoolMemory>
  settings: () => Pools
  sandbox: SandboxSupport
  refused: Pick<ReturnType<typeof openRefusedFiles>, 'find'>
  models: () => readonly Model[]
}) {
  const { local, pools, settings, refused, models } = options
  /** A pool that is opened again has another memory. */
  const sizings = new WeakMap<PoolMemory, Map<number, Local>>()
  function sizingIn(pool: PoolMemory, nodes: number): Local {
    const own = sizings.get(pool) ?? new Map<number, Local>()
    sizings.set(pool, own)
    const known = own.get(nodes)
    if (known) return known
    const users = () => models().filter(model => poolsOf(model).some(use => use.pool === pool.name))
    const sandbox: SandboxSupport = pool.wholeCards ? noSandbox : options.sandbox
    const backends = { find: async (model: Pick<Model, 'gpu'>) => pool.backendFor(model) }
    const sizing = openModelPlacement(pool.largest(nodes), backends, sandbox, refused, users)
    own.set(nodes, sizing)
    return sizing
  }

  /** The layout of a model in a pool. `before`: that of an engine that keeps it. */
  async function layoutIn(
    model: Model,
    use: PoolUse,
    before: Placement | PoolLayout | undefined,
    learned: LearnedMemory | undefined,
  ): Promise<Placement> {
    const known = pools.get(use.pool)
    const limits = limitsOf(use, settings())
    if (!known)
      return { modelId: model.id, kind: 'gpu', devices: 1, bytes: 0, pool: use.pool, impossible: notThere(use.pool) }
    const isUnsized = isUnknown(known)
    const { only: _, ...sized } = await sizingIn(known, nodesOf(model)).placementOf(model, before, learned)
    const placed: Placement = { ...sized, pool: use.pool, ...(limits && { limits }), ...(isUnsized && { isUnsized }) }
    if (presetOf(model).needsBackend && known.wholeCards) return { ...placed, impossible: noCards(model, use.pool) }
    return known.wholeCards && placed.kind === 'gpu' ? wholeCards(placed, known) : placed
  }

  return {
    ...local,
    async placementOf(model: Model, booked?: Placement, learned?: LearnedMemory): Promise<Placement> {
      if (model.pools === undefined) return await local.placementOf(model, booked, learned)
      const before = (pool: string | undefined) =>
        booked === undefined || booked.pool === pool ? booked : booked.elsewhere?.find(one => one.pool === pool)
      const [first, ...others] = await Promise.all(
        poolsOf(model).map(use =>
          use.pool === localPool
            ? local.placementOf(model, before(undefined), learned)
            : layoutIn(model, use, before(use.pool), learned),
        ),
      )
      if (others.length === 0) return first!
      const elsewhere = others.map(
        ({ modelId: _model, elsewhere: _others, ...one }): PoolLayout => ({
          ...one,
          pool: one.pool,
          slots: slotsFor(model, one.plan),
        }),
      )
      return { ...first!, elsewhere }
    },
    /** Whether a pool has answered since the layout of the model there was made without knowing what it has. */
    isOutdated: ({ elsewhere = [], ...first }: Placement): boolean =>
      [first, ...elsewhere].some(({ isUnsized, pool }) => {
        const known = isUnsized && pool !== undefined ? pools.get(pool) : undefined
        return known !== undefined && !isUnknown(known)
      }),
    /** Whether a model surely cannot run in any of its pools. */
    isUnfit: async (model: Model): Promise<boolean> =>
      poolsOf(model).every(use => use.pool === localPool) && (await local.isUnfit(model)),
  }
}

/** Whether it is not known what the pool has, and never was. */
const isUnknown = (pool: PoolMemory): boolean => pool.unknown() !== null && pool.largest(1).devices().length === 0

/** Jobs of a cluster are confined by the cluster alone. */
const noSandbox: SandboxSupport = { tool: null, why: 'jobs of a cluster run outside of the sandboxes of infer' }

const notThere = (pool: string): string => `There is no pool '${pool}' in infer.yaml any more.`

const noCards = ({ engine, id }: Model, pool: string): string =>
  `The engine '${engine}' of '${id}' cannot use the GPUs of the pool '${pool}'. Use the engine llama-server.`

function limitsOf({ pool, maxEngines, maxCards }: PoolUse, settings: Pools): Placement['limits'] {
  const { max_engines, max_cards } = settings[pool] ?? {}
  const limits = { maxEngines: max_engines, maxCards: max_cards, ownEngines: maxEngines, ownCards: maxCards }
  return Object.values(limits).some(one => one !== undefined) ? limits : undefined
}

/** The layout on as many whole cards: all of their memory, so that nothing else is placed beside it. */
function wholeCards(placement: Placement, pool: PoolMemory): Placement {
  const { split: _split, mostDevices: _most, longer: _longer, estimate: _estimate, ...rest } = placement
  const node = pool.largest(placement.nodes ?? 1)
  const sizes = node.capacities().flatMap(({ kind, capacity }) => (kind === 'gpu' ? [capacity] : []))
  const each = Math.min(...sizes)
  const fits = sizes.length > 0 && placement.bytes / placement.devices <= each
  return fits ? { ...rest, bytes: each * placement.devices } : rest
}
