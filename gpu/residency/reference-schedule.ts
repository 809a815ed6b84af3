import type { SlotQueue } from '../../core/models/fleet.ts'
import { expectedLoadMs, expectedRunMs, type ModelState } from './model-state.ts'
import type { DeviceCapacity, Occupant } from './place.ts'
import { placeInPools } from './place-in-pools.ts'

/** An engine of the reference schedule. Times are milliseconds on the residency's clock. */
interface ScheduledEngine extends Occupant {
  /** When it is loaded and has begun all requests that the schedule gave it so far. */
  freeAt: number
}

export interface Machine {
  /** The state of a model; undefined while its memory is not known yet. */
  find: (modelId: string) => ModelState | undefined
  capacities: readonly DeviceCapacity[]
}

/** Requests that one call begins at most, so that it stays below a millisecond. */
const atOnce = 32

/**
 * The schedule of a server that serves in the reference order whichever models are loaded, loads what is next and evicts
 * the least recently used. It runs beside the real one, from the moment at which a model waits for memory, with the same
 * memory and the measured times of loads and requests. It begins requests that still wait, and only those: one that was
 * served is none of its work. So it is never later than first come, first served.
 */
export function openReferenceSchedule(queue: Pick<SlotQueue, 'reference'>) {
  let engines: ScheduledEngine[] = []
  /** When it has begun, or begun to load for, the last request: the next one is not before. */
  let clock = Number.NEGATIVE_INFINITY
  let runs = false
  /** Whether it had begun everything that waited: what it begins next has arrived since. */
  let upToDate = true

  /** Returns when a request of the model begins, and moves the clock. */
  function schedule(state: ModelState, from: number, capacities: readonly DeviceCapacity[]): number {
    const { placement, durations, slots } = state
    const { modelId } = placement
    const slotMs = expectedRunMs(durations) / slots
    const loaded = engines.find(engine => engine.modelId === modelId)
    if (loaded) {
      const begins = Math.max(from, loaded.freeAt)
      clock = begins
      loaded.freeAt = loaded.lastUsedAt = begins + slotMs
      return begins
    }
    const decision = placeInPools({ ...placement, longer: undefined, mayEvict: true }, engines, capacities)
    if (decision.do !== 'load') return Number.POSITIVE_INFINITY
    const evicted = engines.filter(({ engineId }) => decision.evict.includes(engineId))
    clock = Math.max(from, ...evicted.map(({ freeAt }) => freeAt))
    const begins = clock + expectedLoadMs(state)
    engines = engines.filter(engine => !evicted.includes(engine))
    engines.push({
      engineId: modelId,
      modelId,
      devices: decision.devices,
      bytes: placement.bytes,
      ...(decision.shares && { shares: decision.shares }),
      busy: false,
      pinned: state.model.replicas.min > 0,
      turnSince: null,
      turnUntil: null,
      lastUsedAt: begins + slotMs,
      runMs: durations.runMs,
      reloadMs: expectedLoadMs(state),
      freeAt: begins + slotMs,
    })
    return begins
  }

  return {
    /**
     * Begins the requests whose time has come. `occupants`: the engines that are loaded when it starts. Returns when it
     * begins the next one; null when it has begun all.
     */
    advance(now: number, occupants: () => readonly Occupant[], { find, capacities }: Machine): number | null {
      if (!runs) {
        runs = true
        upToDate = true
        clock = now
        engines = occupants().map(one => ({ ...one, busy: false, runsNext: 0, freeAt: Number.NEGATIVE_INFINITY }))
      }
      for (let begun = 0; ; begun++) {
        const modelId = queue.reference.next()
        if (modelId === undefined) upToDate = true
        if (modelId === undefined) return null
        if (upToDate) clock = Math.max(clock, now)
        upToDate = false
        if (clock > now || begun === atOnce) return clock
        const state = find(modelId)
        const begins = state ? schedule(state, clock, capacities) : clock
        queue.reference.begin(begins, state ? expectedRunMs(state.durations) / state.slots : 0)
      }
    },
    /** Nothing waits for memory any more. */
    rest(): void {
      if (!runs) return
      runs = false
      queue.reference.reset()
    },
  }
}

export type ReferenceSchedule = ReturnType<typeof openReferenceSchedule>
