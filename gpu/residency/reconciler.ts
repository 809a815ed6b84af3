import type { Failure } from '../../core/failure.ts'
import type { Demand, SlotQueue } from '../../core/models/fleet.ts'
import { byUrgency, doOthersWait, nextStep, occupantsOf, type ResidencyRules, type Step } from './advance.ts'
import { evictionFor } from './evict.ts'
import { type ExpectedWait, expectedWait } from './expected-wait.ts'
import { loadAhead, waitsForMemory } from './load-ahead.ts'
import type { ModelState, Resident } from './model-state.ts'
import * as states from './model-state.ts'
import { bookingOf } from './new-resident.ts'
import { freeOn, shareOn } from './occupancy.ts'
import { bookingNow, isParkable, leaves, parkedBooking, parkedInstead, returns } from './parking.ts'
import {
  type DeviceCapacity,
  freeBytes,
  type Occupant,
  type PlacementDecision,
  type PlacementRequest,
  type Reservation,
  type WaitForPause,
} from './place.ts'
import { placeInPools } from './place-in-pools.ts'
import { type Plan, planOf } from './plan.ts'
import { openReferenceSchedule } from './reference-schedule.ts'
import type { Effects, Residents } from './residents.ts'
import { succession, withoutSuccessor } from './successor.ts'
import { isBeingReplaced, withoutReplacement } from './unreachable.ts'

/** How exactly it is known when a request falls behind the reference order, milliseconds. */
const followMs = 100
/** For how long the order of the models is used again to tell when one will be ready, milliseconds. */
const orderMs = 50

/** Takes the next step for every model that waits for something, after each event and at the time that a step names. */
export function openReconciler(
  effects: Pick<Effects, 'now' | 'wake' | 'parkingBudget' | 'mayLoadAhead'>,
  capacities: () => readonly DeviceCapacity[],
  queue: SlotQueue,
  rules: ResidencyRules,
  residents: Residents,
  find: (modelId: string) => ModelState | undefined,
) {
  /** Models with waiting requests or missing engines: the only ones that an event can advance. */
  const pending = new Set<ModelState>()
  const reference = openReferenceSchedule(queue)
  /** How many running executions need each model next. */
  let upcoming: ReadonlyMap<string, number> = new Map()
  const runsNext = (modelId: string): number => upcoming.get(modelId) ?? 0
  let closed = false
  /** Another server decides about engines. */
  let settled = false
  let wakeAt = Number.POSITIVE_INFINITY

  function wakeBy(at: number): void {
    if (at >= wakeAt) return
    wakeAt = at
    effects.wake(at)
  }

  const demandOf = (state: ModelState): Demand | undefined => (state.retired ? undefined : queue.demand(state.model.id))

  const needsEngine = (state: ModelState): boolean =>
    states.shortage(state) > 0 ||
    state.loadWaiters.length > 0 ||
    demandOf(state) !== undefined ||
    withoutSuccessor(state).length > 0

  function refuse(
    state: ModelState,
    failure: () => Failure,
    withinMs = Number.POSITIVE_INFINITY,
    waitedMs?: number,
  ): void {
    if (withinMs === Number.POSITIVE_INFINITY) states.refuseLoads(state, failure, effects.now() - (waitedMs ?? 0))
    if (!state.retired) queue.refuse(state.model.id, failure, withinMs, waitedMs)
  }

  /** Resolves the loads that wait for the model, and offers its free slots to the queue. */
  function serve(state: ModelState): void {
    if (closed) return
    states.resolveLoads(state)
    if (states.freeResident(state, effects.now()) && !state.retired) queue.serve(state.model.id)
  }

  const occupied = (now: number, reserved: readonly Reservation[]) =>
    occupantsOf(residents.values(), reserved, {
      now,
      waits: state => demandOf(state) !== undefined,
      orderBound: rules.orderBound,
      runsNext,
    })

  /** The models that wait, in the order of their placement, at most `orderMs` old. */
  let known: { at: number; order: readonly ModelState[] } = { at: Number.NEGATIVE_INFINITY, order: [] }
  function orderAt(now: number): readonly ModelState[] {
    if (now - known.at > orderMs) known = { at: now, order: byUrgency(pending, demandOf, now) }
    return known.order
  }

  /** Runs the reference schedule while a model waits for an engine, and only then. */
  function follow(now: number): void {
    const waits = [...pending].some(
      state => states.servingResidents(state).length === 0 && demandOf(state) !== undefined,
    )
    if (!waits) return reference.rest()
    const next = reference.advance(now, () => occupied(now, []), { find, capacities: capacities() })
    if (next !== null) wakeBy(Math.max(next, now + followMs))
  }

  /**
   * Parks an idle engine where that is cheaper than a start and the memory has room for it, else ends it. `others`: the
   * engines and loads that are booked besides, after it has left.
   */
  function leave(resident: Resident | undefined, reason: string, others?: readonly Occupant[]): void {
    if (!resident) return
    // A parked one has left before.
    if (resident.state !== 'parked') leaves(resident.serves, effects.now())
    const instead =
      isParkable(resident) && effects.parkingBudget
        ? parkedInstead(
            resident,
            others ?? occupied(effects.now(), []).filter(({ engineId }) => engineId !== resident.engineId),
            capacities(),
            effects.parkingBudget(),
          )
        : undefined
    if (instead === undefined) return residents.stop(resident, reason)
    for (const id of instead) residents.stop(residents.get(id), 'the memory for parked engines is needed for another')
    residents.park(resident, parkedBooking(resident))
  }

  /** Starts an engine of the model, or wakes it, after those have left that make room. */
  function load(
    state: ModelState,
    step: Extract<PlacementDecision, { do: 'load' }>,
    now: number,
    reserved: readonly Reservation[],
  ): void {
    const { evict, wakes } = step
    const reason = `to make room for '${state.model.id}'`
    const woken = wakes === undefined ? undefined : residents.get(wakes)
    const awake = woken && { ...woken.awake!, parkedBytes: woken.parkedBytes }
    const booked = awake ? { ...awake, ...bookingNow(awake) } : bookingOf(state, step)
    const leaving = evict.flatMap(id => residents.get(id) ?? []).toSorted((a, b) => b.lastUsedAt - a.lastUsedAt)
    for (const resident of leaving) {
      // Not those that are still to leave.
      const waiting = leaving.slice(leaving.indexOf(resident))
      const stays = ({ engineId }: Occupant) => engineId !== wakes && !waiting.some(one => one.engineId === engineId)
      const others = occupied(now, reserved).filter(stays)
      leave(resident, reason, [...others, { ...loading, ...booked, modelId: state.model.id }])
    }
    returns(state, now)
    const [ending] = [...withoutReplacement(state), ...withoutSuccessor(state)]
    if (woken) residents.wake(woken, now)
    const started = woken ?? residents.start(state, step, now)
    if (ending) ending.successor = started.engineId
  }

  /** Has a successor started for an engine whose time ends soon, by the next run. */
  function succeed(resident: Resident, now: number): void {
    const step = closed || settled ? undefined : succession(resident, now)
    if (step === undefined) return
    wakeBy(step.askAt)
    if (!step.isDue) return
    resident.isEnding = true
    pending.add(resident.serves)
  }

  /** Adds the memory that the model waits for to `reserved`. Returns the step that it has taken. */
  function advance(state: ModelState, now: number, reserved: Reservation[]): Step {
    serve(state)
    const pauseEnd = states.pausedUntil(state, now)
    // Whoever would wait in vain is told at once.
    if (pauseEnd !== null) refuse(state, () => states.enginePaused(state.model.id, pauseEnd - now), pauseEnd - now)
    const occupants = occupied(now, reserved)
    const othersWait = doOthersWait(state, pending, demandOf)
    const step = nextStep(state, demandOf(state), now, occupants, capacities(), rules, othersWait)
    state.isUnplaceable = step.do === 'refuse'
    if (step.do !== 'wait') state.claimed = step.do === 'drain' ? step.reserve.engines : []
    state.waitsFor = 'for' in step ? step.for : []
    const serving = states.servingResidents(state)
    state.waitsForPause = step.do === 'wait' && step.pause !== undefined && serving.length === 0
    state.waitsUntil = step.do === 'drain' ? now : step.do === 'wait' ? step.until : null
    if (step.do !== 'continue') state.reason = 'reason' in step ? step.reason : null
    take(step, state, now, reserved)
    return step
  }

  function take(step: Step, state: ModelState, now: number, reserved: Reservation[]): void {
    switch (step.do) {
      case 'nothing':
        pending.delete(state)
        return
      case 'continue':
        return
      case 'back off': {
        wakeBy(step.until)
        if (step.refuse === 'none') return
        const withinMs = step.refuse === 'all' ? undefined : step.until - now
        return refuse(state, () => states.notStarted(state, state.failures!, now), withinMs)
      }
      case 'refuse':
        if (step.refuse === 'all') refuse(state, () => states.unplaceable(step.reason, state.placement))
        return
      case 'wait':
        if (step.until !== null) wakeBy(step.until)
        if (step.reserve) reserved.push(step.reserve)
        return
      case 'drain':
        reserved.push(step.reserve)
        for (const id of step.drain) residents.get(id)!.draining ??= 'turn'
        return
      case 'load':
        load(state, step, now, reserved)
    }
  }

  /** Loads a model that executions need next, while no other is being loaded and none waits for memory. */
  function loadNext(now: number): void {
    if (upcoming.size === 0 || effects.mayLoadAhead?.() === false) return
    for (const resident of residents.values()) if (resident.state === 'starting') return
    // A parked one is awake in less time than another takes to load.
    const known = Array.from(upcoming.keys(), find).flatMap(state =>
      state === undefined || states.parkedResident(state) ? [] : [state],
    )
    const next = loadAhead(known, runsNext, occupied(now, []), capacities())
    if (!next) return
    next.state.wasLoadedAhead = true
    returns(next.state, now)
    residents.start(next.state, next.where, now, true)
  }

  /** An engine that an execution needs next, or whose replacement is being started, stays beyond its `idle_ttl`. */
  const idleUntil = (resident: Resident): number | null =>
    runsNext(resident.serves.model.id) > 0 || isBeingReplaced(resident) ? null : states.idleUntil(resident)

  /**
   * Until when the model waits for paused devices, and why; undefined if it does not. Without requests too, so that
   * people see it before they send one.
   */
  function pauseOf(state: ModelState): { pause: WaitForPause; reason: string } | undefined {
    if (states.servingResidents(state).length > 0) return undefined
    const all = capacities()
    if (!all.some(({ pause }) => pause)) return undefined
    const request = { ...state.placement, mayEvict: true }
    const decision = placeInPools(request, occupied(effects.now(), []), all)
    return decision.do === 'wait' && decision.pause ? { pause: decision.pause, reason: decision.reason } : undefined
  }

  return {
    demandOf,
    pauseOf,
    /** How long the waiting requests of the model should wait; null when nothing waits for it. */
    expected(state: ModelState): ExpectedWait | null {
      const loads = state.loadWaiters.length > 0 || state.residents.some(({ state }) => state === 'starting')
      if (!loads && demandOf(state) === undefined) return null
      const now = effects.now()
      const ends = pauseOf(state)?.pause.endsInMs
      if (ends === null) return null
      if (ends !== undefined) return { etaMs: ends + states.expectedLoadMs(state), retryMs: ends }
      return expectedWait(state, {
        now,
        demandOf,
        order: orderAt(now),
        capacities: capacities(),
        resident: residents.get,
        orderBound: rules.orderBound,
        clearingMs: residents.clearingMs(),
      })
    },
    /** Free bytes on all devices of an engine together, as far as its model can use them. */
    freeBytes: ({ devices, placement }: Resident): number =>
      freeBytes(devices, occupied(effects.now(), []), capacities(), placement.split === undefined),
    /** The idle engines that leave so that this many bytes are free on a device; all of them where that is not enough. */
    idleEngines(device: string, bytes: number): string[] {
      const idle = occupied(effects.now(), []).filter(
        ({ devices, busy, pinned }) => devices.includes(device) && !busy && !pinned,
      )
      const candidates = idle.map(occupant => ({ occupant, frees: shareOn(occupant, device) }))
      return (evictionFor(bytes, candidates) ?? idle).map(({ engineId }) => engineId)
    },
    /** Whether the devices of an engine still have the memory that is booked there. */
    fits({ devices }: Resident): boolean {
      const all = occupied(effects.now(), [])
      return capacities().every(device => !devices.includes(device.id) || freeOn(device, all) > -1)
    },
    place: (request: PlacementRequest): PlacementDecision =>
      placeInPools(request, occupied(effects.now(), []), capacities()),
    /** What happens if a request for the model comes now. Changes nothing. */
    plan: (state: ModelState, refusal: string | null = null): Plan =>
      planOf(state, refusal, {
        now: effects.now(),
        demandOf,
        pending,
        residents: residents.values,
        resident: residents.get,
        capacities: capacities(),
        rules,
        runsNext,
        clearingMs: residents.clearingMs(),
      }),
    /** An idle engine leaves: it is parked if possible, else it ends. */
    leave,
    refuse,
    serve,
    wakeBy,
    /** Offers the slots of the resident once its pause has ended. */
    serveAfterPause({ serves, pause }: Resident, now: number): void {
      if (pause === null) return
      if (now < pause.until) wakeBy(pause.until)
      else serve(serves)
    },
    succeed,
    wakeWhenIdle: (resident: Resident): void => wakeBy(idleUntil(resident) ?? Number.POSITIVE_INFINITY),
    /** The requested time has come; further ones are requested anew. */
    woken: (): void => void (wakeAt = Number.POSITIVE_INFINITY),
    /** The next run advances this model. */
    add: (state: ModelState): void => void (closed || settled || pending.add(state)),
    needsEngine,
    /** The next run advances this model, if it lacks an engine. */
    addIfNeeded: (state: ModelState): void => void (!closed && !settled && needsEngine(state) && pending.add(state)),
    remove: (state: ModelState): void => void pending.delete(state),
    /** Takes the next step for every model that was added and still waits. */
    run(): void {
      if (closed || settled) return
      for (const resident of residents.values()) if (resident.draining === 'turn') resident.draining = null
      // After nearly every request there is nothing to decide.
      if (pending.size === 0 && upcoming.size === 0) return reference.rest()
      const now = effects.now()
      const reserved: Reservation[] = []
      if (pending.size === 0) reference.rest()
      else follow(now)
      let waits = false
      for (const state of byUrgency(pending, demandOf, now))
        if (waitsForMemory(advance(state, now, reserved))) waits = true
      if (!waits) loadNext(now)
    },
    idleUntil,
    runsNext,
    /** Sets the models that running executions need next. A model that is none of them any more may be loaded ahead again. */
    setUpcoming(models: ReadonlyMap<string, number>, all: Iterable<ModelState>): void {
      upcoming = models
      for (const state of all) if (runsNext(state.model.id) === 0) state.wasLoadedAhead = false
    },
    /** What the reference order has begun on devices that are paused now, or could not begin there, is begun anew. */
    beginAnew: (): void => reference.rest(),
    /** Whether nothing is loaded any more. */
    isClosed: (): boolean => closed || settled,
    /** Whether requests that wait for a ready engine are served although nothing is loaded. */
    isSettled: (): boolean => settled && !closed,
    /** Loads and ends no engine any more. Requests that wait for one that is ready are served by it. */
    settle(): void {
      settled = true
      pending.clear()
    },
    close(): void {
      closed = true
      pending.clear()
    },
  }
}

/** What a load books that begins next. */
const loading: Omit<Occupant, 'devices' | 'bytes' | 'shares'> = {
  engineId: '',
  modelId: '',
  busy: true,
  pinned: false,
  turnSince: null,
  turnUntil: null,
  lastUsedAt: Number.POSITIVE_INFINITY,
  runMs: null,
  reloadMs: 0,
}

export type Reconciler = ReturnType<typeof openReconciler>
