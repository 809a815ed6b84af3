import type { Failure } from '../../core/failure.ts'
import type { Demand, SlotQueue } from '../../core/models/fleet.ts'
import { movingAverage } from '../../core/moving-average.ts'
import { byUrgency, nextStep, occupantsOf, type Rules } from './advance.ts'
import { addFailure } from './backoff.ts'
import { defaultRules, type Effects } from './effects.ts'
import type { LoadWaiter, ModelState, Resident } from './model-state.ts'
import * as states from './model-state.ts'
import { openModelStates } from './model-states.ts'
import { type DeviceCapacity, unfitReason } from './place.ts'

/**
 * Decides which models are loaded where: a state machine and the only writer of model states and residents. Events are
 * method calls, decisions are effects; nothing here waits, reads another clock or inspects a process. Requests wait in
 * `queue`, which reports its demand for each model and is offered every free slot. README.md explains the rules.
 */
export function openResidency(
  effects: Effects,
  capacities: () => readonly DeviceCapacity[],
  queue: SlotQueue,
  rules: Rules = defaultRules,
) {
  const all = openModelStates({
    now: effects.now,
    retired(state) {
      pending.delete(state)
      unloadAll(state)
    },
  })
  const residents = new Map<string, Resident>()
  /** Models with waiting requests or missing engines: the only ones that an event can advance. */
  const pending = new Set<ModelState>()
  let closing = false
  let wakeAt = Number.POSITIVE_INFINITY

  function wakeBy(at: number): void {
    if (at >= wakeAt) return
    wakeAt = at
    effects.wake(at)
  }

  const demandOf = (state: ModelState): Demand | undefined => (state.retired ? undefined : queue.demand(state.model.id))

  /** Ends every engine: idle ones at once, the others after their requests. */
  function unloadAll(state: ModelState): void {
    state.unloaded = true
    for (const resident of states.liveResidents(state)) {
      if (resident.leases > 0) resident.draining = 'unload'
      else stop(resident, state.retired ? 'the configuration has changed' : 'unloaded')
    }
  }

  /** Takes a free slot, or returns undefined. On the hot path: it only counts. */
  function take(modelId: string): Resident | undefined {
    const state = all.get(modelId)
    const resident = state && states.freeResident(state)
    if (resident) resident.leases++
    return resident
  }

  /** More or fewer requests wait for the model than before. */
  function demandChanged(state: ModelState): void {
    if (closing) return queue.refuse(state.model.id, states.shuttingDown, Number.POSITIVE_INFINITY)
    if (state.retired) return
    if (queue.demand(state.model.id)) state.unloaded = false
    pending.add(state)
    advanceAll()
  }

  /** Loads the model and notifies the waiter when it is ready. Returns a function that ends the wait. */
  function load(requested: ModelState, waiter: Omit<LoadWaiter, 'since'>): () => void {
    const state = requested.retired ? all.get(requested.model.id) : requested
    if (closing || !state) {
      waiter.refuse(closing ? states.shuttingDown() : states.notOffered(requested.model.id))
      return () => {}
    }
    const one: LoadWaiter = { ...waiter, since: effects.now() }
    state.unloaded = false
    state.loadWaiters.push(one)
    pending.add(state)
    advanceAll()
    return () => {
      // The state may have been replaced; its successor then has the waiter.
      const waiters = all.get(state.model.id)?.loadWaiters ?? []
      const at = waiters.indexOf(one)
      if (at < 0) return
      waiters.splice(at, 1)
      advanceAll()
    }
  }

  /** Releases a slot. `ranMs` is null for a request that failed; it does not count for the average. */
  function release(resident: Resident, ranMs: number | null): void {
    const state = resident.serves
    resident.leases--
    resident.lastUsedAt = effects.now()
    if (ranMs !== null) {
      state.durations.runMs = movingAverage(state.durations.runMs, ranMs)
      if (!resident.hasSucceeded) {
        resident.hasSucceeded = true
        state.failures = null
      }
    }
    if (resident.state !== 'ready') return
    if (resident.draining === null && queue.waits(state.model.id)) queue.serve(state.model.id)
    if (resident.leases > 0) return
    if (resident.draining === 'unload') stop(resident, 'unloaded')
    if (pending.size > 0) advanceAll()
    if (resident.state === 'ready' && resident.leases === 0) wakeWhenIdle(resident)
  }

  const wakeWhenIdle = (resident: Resident): void => wakeBy(states.idleUntil(resident) ?? Number.POSITIVE_INFINITY)

  /** Takes the next step for every pending model. */
  function advanceAll(): void {
    if (closing) return
    const now = effects.now()
    for (const resident of residents.values()) if (resident.draining === 'turn') resident.draining = null
    const reserved = new Set<string>()
    for (const state of byUrgency(pending, demandOf, now, rules)) advance(state, now, reserved)
  }

  function refuse(state: ModelState, failure: () => Failure, withinMs = Number.POSITIVE_INFINITY): void {
    if (withinMs === Number.POSITIVE_INFINITY) states.refuseLoads(state, failure)
    if (!state.retired) queue.refuse(state.model.id, failure, withinMs)
  }

  /** Resolves the loads that wait for the model, and offers its free slots to the queue. */
  function serve(state: ModelState): void {
    states.resolveLoads(state)
    if (states.freeResident(state) && !state.retired) queue.serve(state.model.id)
  }

  function advance(state: ModelState, now: number, reserved: Set<string>): void {
    serve(state)
    const occupants = occupantsOf(residents.values(), reserved)
    const step = nextStep(state, demandOf(state), now, occupants, capacities(), rules)
    state.isUnplaceable = step.do === 'refuse'
    if (step.do !== 'continue') state.reason = 'reason' in step ? step.reason : null
    switch (step.do) {
      case 'nothing':
        pending.delete(state)
        return
      case 'continue':
        return
      case 'back off': {
        wakeBy(step.until)
        if (step.refuse === 'none') return
        refuse(
          state,
          () => states.notStarted(state, state.failures!, now),
          step.refuse === 'all' ? undefined : step.until - now,
        )
        return
      }
      case 'refuse':
        if (step.refuse === 'all') refuse(state, () => states.unplaceable(step.reason))
        return
      case 'wait':
        if (step.until !== null) wakeBy(step.until)
        for (const id of step.reserve) reserved.add(id)
        return
      case 'drain':
        for (const id of step.drain) {
          reserved.add(id)
          residents.get(id)!.draining ??= 'turn'
        }
        return
      case 'load':
        for (const id of step.evict) {
          residents.get(id)!.serves.evictedAt = now
          stop(residents.get(id), `to make room for '${state.model.id}'`)
        }
        start(state, step.devices, now)
    }
  }

  function start(state: ModelState, devices: readonly string[], now: number): void {
    const resident = states.newResident(state, effects.newEngineId(), devices, now)
    residents.set(resident.engineId, resident)
    state.residents.push(resident)
    state.engineStarts++
    begin(resident)
  }

  /**
   * Starts the engine in phases: first stopping engines on its devices must end, then the card must show free memory.
   */
  function begin(resident: Resident): void {
    const stopping = [...residents.values()].some(
      other => other.state === 'stopping' && other.devices.some(id => resident.devices.includes(id)),
    )
    if (stopping) resident.phase = 'clearing'
    else if (resident.phase === 'clearing') {
      resident.phase = 'settling'
      effects.settle(resident)
    } else {
      resident.phase = 'launching'
      effects.start(resident)
    }
  }

  function stop(resident: Resident | undefined, reason: string, kill = false): void {
    if (!resident || (resident.state === 'stopping' && !kill)) return
    resident.state = 'stopping'
    effects.stop(resident, reason, kill)
  }

  function remove(resident: Resident): void {
    residents.delete(resident.engineId)
    resident.state = 'stopping'
    const state = resident.serves
    state.residents = state.residents.filter(other => other !== resident)
    if (!closing && needsEngine(state)) pending.add(state)
    for (const other of residents.values()) if (other.phase === 'clearing' && other.state === 'starting') begin(other)
  }

  const needsEngine = (state: ModelState): boolean =>
    states.shortage(state) > 0 || state.loadWaiters.length > 0 || demandOf(state) !== undefined

  function failed(resident: Resident, reason: string, now: number): void {
    const state = resident.serves
    state.failures = addFailure(
      states.isProven(resident, now, rules) ? null : state.failures,
      reason,
      now,
      rules.backoff,
    )
    state.engineFailures++
    if (needsEngine(state)) wakeBy(state.failures.retryAt)
  }

  return {
    upsert: all.upsert,
    take,
    demandChanged,
    load,
    release,
    /** The devices show the freed memory, or the wait for it has timed out. */
    settled(engineId: string): void {
      const resident = residents.get(engineId)
      if (resident?.state === 'starting' && resident.phase === 'settling') begin(resident)
    },
    ready(engineId: string): void {
      const resident = residents.get(engineId)
      if (resident?.state !== 'starting') return
      const now = effects.now()
      resident.state = 'ready'
      resident.readyAt = now
      resident.lastUsedAt = now
      const { durations } = resident.serves
      durations.loadMs = movingAverage(durations.loadMs, now - resident.startedAt)
      effects.loaded?.(resident.serves.model.id, now - resident.startedAt)
      // Before other models are placed: one that waits longer would evict it before its first request.
      serve(resident.serves)
      pending.add(resident.serves)
      advanceAll()
      if (resident.leases === 0) wakeWhenIdle(resident)
    },
    /** An engine could not be started; none of its processes is left. */
    startFailed(engineId: string, reason: string): void {
      const resident = residents.get(engineId)
      if (!resident) return
      const now = effects.now()
      const stopped = resident.state === 'stopping'
      if (!stopped) failed(resident, reason, now)
      remove(resident)
      const state = resident.serves
      if (!stopped && states.liveResidents(state).length === 0)
        refuse(state, () => states.notStarted(state, state.failures!, now))
      advanceAll()
    },
    /** An engine has ended, stopped by infer or by itself; none of its processes is left. */
    exited(engineId: string, reason: string): void {
      const resident = residents.get(engineId)
      if (!resident) return
      if (resident.state !== 'stopping') failed(resident, reason, effects.now())
      remove(resident)
      advanceAll()
    },
    /** An engine makes no progress: it is killed and counts as failed. */
    stuck(engineId: string, reason: string): void {
      const resident = residents.get(engineId)
      if (resident?.state !== 'ready') return
      failed(resident, reason, effects.now())
      stop(resident, reason, true)
    },
    /** An engine continues a cancelled request: it is killed. That is no failure, so the next start is not delayed. */
    unresponsive: (engineId: string, reason: string): void => stop(residents.get(engineId), reason, true),
    /** Sets the measured memory of an engine. A booking only grows: booking too little makes the next engine fail. */
    measured(engineId: string, bytes: number): void {
      const resident = residents.get(engineId)
      if (resident) resident.bytes = Math.max(resident.bytes, bytes)
    },
    /** Ends every engine of the model: idle ones at once, the others after their requests. */
    unload(modelId: string): void {
      const state = all.get(modelId)
      if (state) states.refuseLoads(state, () => states.loadCancelled(modelId))
      if (state) unloadAll(state)
      // Waiting requests load it again.
      if (state && needsEngine(state)) pending.add(state)
      advanceAll()
    },
    removeModel(modelId: string): void {
      all.remove(modelId)
      queue.refuse(modelId, () => states.notOffered(modelId), Number.POSITIVE_INFINITY)
      advanceAll()
    },
    /** Loads what the configuration keeps loaded, and decides again for every waiting model. */
    refresh(): void {
      if (closing) return
      for (const state of all.values()) if (needsEngine(state)) pending.add(state)
      advanceAll()
    },
    tick(): void {
      const now = effects.now()
      wakeAt = Number.POSITIVE_INFINITY
      for (const state of all.values())
        for (const resident of states.liveResidents(state)) {
          if (now >= (states.idleUntil(resident) ?? Number.POSITIVE_INFINITY)) stop(resident, 'idle')
          else wakeWhenIdle(resident)
        }
      advanceAll()
    },
    /** Refuses all waiting and all further requests; engines keep running. */
    close(): void {
      closing = true
      for (const state of all.values()) refuse(state, states.shuttingDown)
      pending.clear()
    },
    /** Ends every engine now. */
    stopAll(reason: string): void {
      for (const resident of residents.values()) stop(resident, reason)
    },
    residents: (): readonly Resident[] => [...residents.values()],
    find: (modelId: string): ModelState | undefined => all.get(modelId),
    known: all.ids,
    activity: (state: ModelState) =>
      states.activityOf(
        state,
        demandOf(state),
        effects.now(),
        rules.backoff,
        unfitReason(state.placement, capacities()),
      ),
    /** Milliseconds of the last `waitedMs` in which this resident was loading. */
    loadedMs(resident: Resident, waitedMs: number): number {
      const now = effects.now()
      return states.loadedDuring(resident, now - waitedMs, now)
    },
  }
}

export type Residency = ReturnType<typeof openResidency>
