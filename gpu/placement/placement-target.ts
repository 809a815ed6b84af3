import { engineFacts } from '../../core/models/engine-facts.ts'
import type { LeftDevice } from '../../core/models/fleet.ts'
import type { Model } from '../../core/models/model.ts'
import { nodesOf } from '../../core/models/spanned-nodes.ts'
import type { Device } from '../devices/device.ts'
import type { PlacementTarget } from '../estimate/target.ts'
import type { Backend } from '../presets/preset.ts'
import { presetOf } from '../presets/presets.ts'
import { equalCapacities } from '../residency/equal-share.ts'
import type { DeviceCapacity, PlacementRequest } from '../residency/place.ts'
import { canLimitTo } from './card-backend.ts'
import { namedCards } from './named-cards.ts'

/** The devices that a model may use. */
export type Where = Pick<
  PlacementRequest,
  'kind' | 'devices' | 'nodes' | 'only' | 'impossible' | 'mostDevices' | 'takesShare'
>

/**
 * The devices on which a model runs, by its settings. `runsOn`: see the preset. `backend`: that of the built-in engine; an
 * engine that has one of its own uses what its maker's runtime or Vulkan shows. `left`: the cards that are left to others.
 */
export function devicesFor(
  model: Model,
  runsOn: string,
  devices: readonly Device[],
  { backend, left = [] }: { backend?: Backend | null | undefined; left?: readonly LeftDevice[] } = {},
): Where {
  if (runsOn === 'elsewhere') return { kind: 'none', devices: 0 }
  if (runsOn === 'cpu' || model.devices === 'cpu') return { kind: 'cpu', devices: 1 }
  const cards = devices.filter(({ kind }) => kind !== 'cpu')
  const takesShare = presetOf(model).takesShare && { takesShare: true }
  const usable = cards.filter(card => canUse(model, card, cards, backend))
  if (runsOn !== 'gpu' && usable.length === 0) return { kind: 'cpu', devices: 1 }
  const unusable = cards.filter(card => !usable.includes(card))
  const why = `The engine '${model.engine}' of '${model.id}' cannot use ${unusable.map(({ id, name }) => `${id} (${name})`).join(', ')}.`
  if (typeof model.devices === 'number' || model.devices === 'auto') {
    const nodes = nodesOf(model)
    const count = model.devices === 'auto' ? 1 : model.devices * nodes
    if (cards.length > 0 && usable.length === 0) return { kind: 'gpu', devices: count, impossible: why }
    // A process sees one slice of a card only.
    const hasSlices = usable.some(({ cudaId }) => cudaId?.startsWith('MIG-'))
    const divides = model.devices === 'auto' && engineFacts(model.engine).spansCards && !hasSlices
    return {
      kind: 'gpu',
      devices: count,
      ...(nodes > 1 && { nodes }),
      ...takesShare,
      ...(unusable.length > 0 && { only: usable.map(({ id }) => id) }),
      ...(divides && { mostDevices: usable.length }),
    }
  }
  const named = namedCards(model.id, model.devices, devices, left)
  if ('missing' in named) return { kind: 'gpu', devices: 1, impossible: named.missing }
  const refused = unusable.some(({ id }) => named.ids.includes(id)) && { impossible: why }
  return { kind: 'gpu', devices: named.ids.length, only: named.ids, ...takesShare, ...refused }
}

/** Whether the engine of a model can use a card: by its backend, by the runtime of the maker, or by Vulkan. */
function canUse(model: Model, card: Device, cards: readonly Device[], backend: Backend | null | undefined): boolean {
  if (backend) return canLimitTo(card, backend.gpu, cards)
  const { needsBackend, usesVulkan } = presetOf(model)
  return (
    needsBackend || usesVulkan || card.cudaId !== null || card.hipId !== undefined || card.levelZeroId !== undefined
  )
}

/**
 * Bytes that a model may use on each device, most first; for an engine that takes the same share of several, what it can
 * have on each of so many.
 */
export function capacitiesOf(
  where: Pick<Where, 'kind' | 'only' | 'takesShare'>,
  capacities: readonly DeviceCapacity[],
): number[] {
  const usable = usableOf(where, capacities)
  return where.takesShare ? equalCapacities(usable) : usable.map(({ capacity }) => capacity)
}

const usableOf = ({ kind, only }: Pick<Where, 'kind' | 'only'>, capacities: readonly DeviceCapacity[]) =>
  capacities
    .filter(({ id, kind: own }) => own === kind && (only?.includes(id) ?? true))
    .toSorted((a, b) => b.capacity - a.capacity)

/** The devices that a model may get; undefined when infer starts no engine. */
export function placementTargetFor(
  { kind, devices, only, takesShare, mostDevices = devices }: Where,
  slots: number,
  capacities: readonly DeviceCapacity[],
): PlacementTarget | undefined {
  if (kind === 'none') return undefined
  const cards = capacitiesOf({ kind, only, ...(takesShare && { takesShare }) }, capacities)
  const capacity = cards[devices - 1] ?? cards.at(-1) ?? 0
  const sizes = smallestOf(usableOf({ kind, ...(only && { only }) }, capacities))
  return { kind, devices, capacity, slots, ...sizes, ...(kind === 'gpu' ? { cards: cards.slice(0, mostDevices) } : {}) }
}

/** The smallest of the first n of these devices, for every n; nothing where the memory of one is not known. */
function smallestOf(devices: readonly DeviceCapacity[]): Pick<PlacementTarget, 'sizes'> {
  let smallest = { total: Number.POSITIVE_INFINITY, free: Number.POSITIVE_INFINITY }
  const sizes = devices.map(({ totalBytes = Number.NaN, usedByOthers = 0 }) => {
    const { total, free } = smallest
    smallest = { total: Math.min(total, totalBytes), free: Math.min(free, totalBytes - usedByOthers) }
    return smallest
  })
  return Number.isNaN(smallest.total) ? {} : { sizes }
}
