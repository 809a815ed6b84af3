import { type DeviceCapacity, type Occupant, type PlacementDecision, type PlacementRequest, place } from './place.ts'

type Pause = NonNullable<DeviceCapacity['pause']>

/** Until when a device is paused, milliseconds from now; last those of which nobody knows. */
const endOf = ({ pause }: DeviceCapacity): number => pause?.endsInMs ?? Number.POSITIVE_INFINITY

/**
 * Decides where a model is loaded, on the devices that are not paused. A model that has no place there, and would have one
 * on the others, waits until they are used again. Pure.
 */
export function placeUnpaused(
  request: PlacementRequest,
  loaded: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
): PlacementDecision {
  const paused = capacities.filter(({ pause }) => pause !== undefined).toSorted((a, b) => endOf(a) - endOf(b))
  if (paused.length === 0) return place(request, loaded, capacities)
  const usable = capacities.filter(({ pause }) => pause === undefined)
  const now = place(request, loaded, usable)
  if (now.do !== 'refuse') return now
  for (let count = 1; count <= paused.length; count++) {
    const later = place({ ...request, mayEvict: true }, [], [...usable, ...paused.slice(0, count)])
    if (later.do !== 'load') continue
    const needed = paused.filter(({ id }) => later.devices.includes(id))
    return {
      do: 'wait',
      for: [],
      reserve: { modelId: request.modelId, engines: [], free: [] },
      where: later,
      reason: waitReason(request, needed),
      pause: { endsInMs: longest(needed.map(({ pause }) => pause!)) },
    }
  }
  // It would have no place without the pause either.
  return place(request, loaded, capacities)
}

function waitReason({ modelId, pool }: PlacementRequest, paused: readonly DeviceCapacity[]): string {
  const ofPool = paused.find(({ pause }) => pause?.ofPool !== undefined)?.pause?.ofPool
  if (ofPool !== undefined) return `'${modelId}' waits for the pool '${pool}': ${ofPool}`
  return `'${modelId}' waits: ${paused.map(({ id, pause }) => `${id} ${pause!.text}`).join(', ')}.`
}

const longest = (pauses: readonly Pause[]): number | null =>
  pauses.some(({ endsInMs }) => endsInMs === null) ? null : Math.max(...pauses.map(({ endsInMs }) => endsInMs!))
