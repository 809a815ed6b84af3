import { movingAverage } from '../../core/moving-average.ts'
import type { Booking, ModelState, Resident } from './model-state.ts'
import { newResident } from './new-resident.ts'
import { bookingNow, host } from './parking.ts'
import type { Chosen, DeviceCapacity } from './place.ts'
import { isOnSameMemory } from './shared-memory.ts'

/** For how long a device may show the memory of an ended engine as used, milliseconds. */
const showsEndedMs = 5_000

/** Milliseconds until evicted engines have ended and their memory is free, before that was measured. */
const firstClearingMs = 1_000

/** Every engine from the decision to start it until its process has ended: the memory that is booked. */
export function openResidents(
  effects: Pick<Effects, 'now' | 'newEngineId' | 'start' | 'settle' | 'measureAgain' | 'stop' | 'park' | 'unpark'>,
  capacities: () => readonly DeviceCapacity[],
) {
  const residents = new Map<string, Resident>()
  let clearingMs: number | null = null
  /** When the last engine of each device has ended. */
  const endedAt = new Map<string, number>()
  const mayShowEnded = (id: string): boolean =>
    effects.now() - (endedAt.get(id) ?? Number.NEGATIVE_INFINITY) < showsEndedMs

  /** Starts the engine in phases: first, stopping engines there must end, then the card must show free memory. */
  function begin(resident: Resident): void {
    const stopping = [...residents.values()].some(
      other =>
        leavesMemory(other) &&
        // Its launcher gives no card twice, and may not know for minutes that its machine is gone.
        other.unreachable === null &&
        isOnSameMemory(bookingNow(other).devices, resident.devices, capacities()),
    )
    if (stopping) {
      resident.phase = 'clearing'
      return
    }
    const [hasWaited, isSettled] = [resident.phase !== 'launching', resident.phase === 'settling']
    resident.phase = 'settling'
    if (!isSettled && resident.devices.some(mayShowEnded)) return effects.settle(resident)
    if (!isSettled && effects.measureAgain?.(resident)) return
    if (hasWaited) clearingMs = movingAverage(clearingMs, effects.now() - resident.startedAt)
    resident.phase = 'launching'
    resident.launchedAt = effects.now()
    if (resident.wakes) effects.unpark?.(resident)
    else effects.start(resident)
  }

  /** Parks the engine once those have ended that leave the main memory: together they could use more than there is. */
  function beginParking(resident: Resident): void {
    for (const other of residents.values())
      if (other.state === 'stopping' && bookingNow(other).devices.includes(host)) return
    resident.phase = 'parking'
    effects.park?.(resident)
  }

  /** Memory of these devices is free now: engines that have waited for it go on. */
  function released(devices: readonly string[]): void {
    for (const id of devices) endedAt.set(id, effects.now())
    for (const other of residents.values())
      if (other.phase === 'clearing')
        if (other.state === 'starting') begin(other)
        else if (other.state === 'parked') beginParking(other)
  }

  /** From here on the engine serves no further request. */
  function leave(resident: Resident): void {
    resident.state = 'stopping'
  }

  function stop(resident: Resident | undefined, reason: string, kill = false): void {
    if (!resident || (resident.state === 'stopping' && !kill)) return
    leave(resident)
    effects.stop(resident, reason, kill)
  }

  return {
    /** Returns the new engine. `ahead`: no request waits for it. */
    start(state: ModelState, where: Chosen, now: number, ahead = false): Resident {
      const resident = newResident(state, effects.newEngineId(), where, now, ahead)
      residents.set(resident.engineId, resident)
      state.residents.push(resident)
      state.engineStarts++
      begin(resident)
      return resident
    },
    /** Adds an engine that runs already and has to answer. */
    add(resident: Resident): void {
      residents.set(resident.engineId, resident)
      resident.serves.residents.push(resident)
    },
    /** The devices show the freed memory, or the wait for it has timed out. */
    settled(engineId: string): void {
      const resident = residents.get(engineId)
      if (resident?.state === 'starting' && resident.phase === 'settling') begin(resident)
    },
    stop,
    /** Ends an engine whose device may not be used now. Its load ahead was not in vain: it may be repeated. */
    stopForDevice(resident: Resident, reason: string, kill: boolean): void {
      if (resident.ahead) resident.serves.wasLoadedAhead = false
      stop(resident, reason, kill)
    },
    /** Forgets an engine whose process has ended; starting ones may have waited for its memory. */
    remove(resident: Resident): void {
      residents.delete(resident.engineId)
      leave(resident)
      const state = resident.serves
      state.residents = state.residents.filter(other => other !== resident)
      released(resident.devices)
    },
    /** An idle engine gives its memory back, but for what is `booked` from now on, and can be woken. */
    park(resident: Resident, booked: Booking): void {
      const { devices, bytes, shares } = resident
      Object.assign(resident, booked)
      resident.awake = { devices, bytes, shares }
      resident.state = 'parked'
      resident.phase = 'clearing'
      resident.parkedBytes = resident.parking?.hostBytes ?? 0
      resident.readyAt = null
      resident.owed = 0
      resident.draining = null
      resident.keptUntil = Number.NEGATIVE_INFINITY
      beginParking(resident)
    },
    /** A parked engine has given its memory back. */
    parked(resident: Resident): void {
      resident.phase = 'parked'
      released(resident.devices)
    },
    /** A parked engine gets its memory again, and is `ready` later. */
    wake(resident: Resident, now: number): void {
      Object.assign(resident, resident.awake)
      resident.awake = null
      resident.state = 'starting'
      resident.wakes = true
      resident.startedAt = now
      resident.launchedAt = null
      begin(resident)
    },
    /** Milliseconds from the decision to evict until the next engine is started, on average. */
    clearingMs: (): number => clearingMs ?? firstClearingMs,
    get: (engineId: string): Resident | undefined => residents.get(engineId),
    all: (): readonly Resident[] => [...residents.values()],
    /** The same without a copy, for the hot path. */
    values: (): Iterable<Resident> => residents.values(),
  }
}

/** Whether memory that is not booked for it any more may still be in use. */
const leavesMemory = ({ state, phase }: Resident): boolean =>
  state === 'stopping' || (state === 'parked' && phase !== 'parked')

export type Residents = ReturnType<typeof openResidents>

/**
 * The effects that the residency calls. Each returns at once and is answered later by an event, also when there was
 * nothing to do: `start` by `ready` or `startFailed`, `settle` and `measureAgain` by `settled`, `stop` by `exited`, `wake` by
 * `tick`, `park` by `parked` or `parkFailed`, `unpark` by `ready` or `parkFailed`.
 */
export interface Effects {
  now: () => number
  /** Starts the engine of a resident. */
  start(resident: Resident): void
  /** Waits until the devices show the memory of ended engines as free. */
  settle(resident: Resident): void
  /**
   * Measures the devices where another program may have taken the memory since the last time, and the engine needs most of
   * what is free. Returns whether it does.
   */
  measureAgain?(resident: Resident): boolean
  /** Ends the engine in any state; `kill` ends it without the grace period. */
  stop(resident: Resident, reason: string, kill: boolean): void
  /** Has a ready engine give its memory back, and wakes a parked one. */
  park?(resident: Resident): void
  unpark?(resident: Resident): void
  /** Bytes of the main memory that parked engines may use together. */
  parkingBudget?(): number
  /** Called when parked engines of a model were measured: durations, or bytes on a card. */
  parkingMeasured?(resident: Resident): void
  /** Calls `tick` at this time, and not at a time that was set before. */
  wake(at: number): void
  newEngineId(): string
  /** Whether no request waits for a model whose memory is not known yet; absent: it is. Otherwise no model is loaded ahead. */
  mayLoadAhead?(): boolean
  /**
   * Called when an engine ran out of memory while it loaded. `bytes`: what the next one gets, which starts at once
   * (`startsAgain`); else what a layout like this one seems to need.
   */
  ranOut?(resident: Resident, bytes: number, startsAgain: boolean): void
  /** Called when an engine has completed its first request. */
  answered?(resident: Resident): void
  /** Called when an engine has ended by an error of its GPU. */
  gpuFailed?(resident: Resident): void
  /** Called when an engine is ready, with the milliseconds that it took. */
  loaded?(resident: Resident, ms: number): void
}
