import type { SlotQueue } from '../../core/models/fleet.ts'
import { movingAverage } from '../../core/moving-average.ts'
import { activityOf } from './activity.ts'
import type { ResidencyRules } from './advance.ts'
import { engineEvents } from './engine-events.ts'
import type { LoadWaiter, ModelState, Resident } from './model-state.ts'
import * as states from './model-state.ts'
import { openModelStates } from './model-states.ts'
import type { DeviceCapacity } from './place.ts'
import { unfitReason } from './place-in-pools.ts'
import { openReconciler } from './reconciler.ts'
import { type Effects, openResidents } from './residents.ts'
import { hasSuccessor, startingSuccessor } from './successor.ts'

/**
 * Decides which models are loaded where: a state machine and, with the parts that it opens here, the only writer of model
 * states and residents. Events are method calls, decisions are effects; nothing waits, reads another clock or inspects a
 * process. Requests wait in `queue`, which reports its demand for each model and is offered every free slot. README.md
 * explains the rules.
 */
export function openResidency(
  effects: Effects,
  capacities: () => readonly DeviceCapacity[],
  queue: SlotQueue,
  rules: ResidencyRules,
) {
  const residents = openResidents(effects, capacities)
  const reconciler = openReconciler(effects, capacities, queue, rules, residents, modelId => all.get(modelId))
  const all = openModelStates({
    now: effects.now,
    retired(state) {
      reconciler.remove(state)
      unloadAll(state)
    },
  })

  /** Why an engine ends whose devices are paused. Those of a pool are where it is used no more, or a limit of it is reached. */
  function pausedText({ devices }: Resident): string {
    const paused = capacities().find(({ id, pause }) => pause !== undefined && devices.includes(id))
    if (paused?.pool === undefined) return devicePaused
    return paused.pause?.ofPool === undefined ? 'its pool was changed or removed' : 'a limit of its pool is reached'
  }

  const leavingText = (resident: Resident): string =>
    resident.draining === 'pause' ? pausedText(resident) : resident.draining === 'succeeded' ? hasSuccessor : 'unloaded'

  /** Ends every engine: idle ones at once, the others after their requests. */
  function unloadAll(state: ModelState): void {
    state.unloaded = true
    for (const resident of state.residents) {
      if (resident.leases > 0) resident.draining = 'unload'
      else residents.stop(resident, state.retired ? 'its configuration or its devices have changed' : 'unloaded')
    }
  }

  /** Takes a free slot, of the `preferred` engine if it has one, or returns undefined. On the hot path: it only counts. */
  function take(modelId: string, alone?: { holdMs: number }, preferred?: string): Resident | undefined {
    const state = all.get(modelId)
    const resident = state && states.freeResident(state, effects.now(), alone !== undefined, preferred)
    if (!resident) {
      if (state && alone && alone.holdMs > 0) states.holdForOne(state, effects.now(), alone.holdMs)
      return undefined
    }
    occupy(resident)
    if (resident.pause) resident.pause.probing = true
    if (alone) {
      resident.alone = true
      resident.heldUntil = Number.NEGATIVE_INFINITY
    }
    return resident
  }

  /** The lease that had the engine alone shares it from now on. */
  function share(resident: Resident): void {
    if (!resident.alone) return
    resident.alone = false
    if (resident.state === 'ready' && queue.waits(resident.serves.model.id)) queue.serve(resident.serves.model.id)
  }

  /** Takes a slot of this engine and of no other; false if it has none that is free, or wants a pause. */
  function takeOf(resident: Resident): boolean {
    if (resident.pause !== null || !states.hasFreeSlot(resident, effects.now())) return false
    occupy(resident)
    return true
  }

  /** Counts one more of its slots as used, whether it has a free one or not. */
  function occupy(resident: Resident): void {
    resident.leases++
    resident.ahead = resident.serves.wasLoadedAhead = false
    resident.keptUntil = Number.NEGATIVE_INFINITY
    if (resident.owed > 0 && --resident.owed === 0) reconciler.wakeBy(effects.now())
  }

  /** Whether its requests are still served although no engine is loaded any more: one is ready. */
  const isServedOn = (state: ModelState): boolean => reconciler.isSettled() && state.residents.some(states.isServing)

  /** More or fewer requests wait for the model than before. */
  function demandChanged(state: ModelState): void {
    if (reconciler.isClosed()) {
      if (!isServedOn(state)) queue.refuse(state.model.id, states.modelsClosed, Number.POSITIVE_INFINITY)
      return
    }
    if (state.retired) return
    if (queue.demand(state.model.id)) state.unloaded = false
    else for (const resident of state.residents) resident.owed = 0
    reconciler.add(state)
    reconciler.run()
  }

  /** Loads the model and notifies the waiter when it is ready. Returns a function that ends the wait. */
  function load(requested: ModelState, waiter: Omit<LoadWaiter, 'since'>): () => void {
    const state = requested.retired ? all.get(requested.model.id) : requested
    if (reconciler.isClosed() || !state) {
      waiter.refuse(reconciler.isClosed() ? states.modelsClosed() : states.notOffered(requested.model.id))
      return () => {}
    }
    const one: LoadWaiter = { ...waiter, since: effects.now() }
    state.unloaded = false
    state.loadWaiters.push(one)
    reconciler.add(state)
    reconciler.run()
    return () => {
      // The state may have been replaced; its successor then has the waiter.
      const waiters = all.get(state.model.id)?.loadWaiters ?? []
      const at = waiters.indexOf(one)
      if (at < 0) return
      waiters.splice(at, 1)
      reconciler.run()
    }
  }

  /** An engine that its model could do without for as long as idle ones stay takes no more requests. */
  function leaveIfSurplus(resident: Resident): void {
    const { model } = resident.serves
    const now = effects.now()
    if (!states.isSurplus(resident, states.runningOf(resident.serves) + 1)) resident.neededAt = now
    else if (model.idle_ttl > 0 && now - resident.neededAt >= model.idle_ttl) resident.draining ??= 'unload'
  }

  /**
   * Releases a slot. `ranMs` is null for a request that failed; it does not count for the average. `probe`: it was the
   * first request after a pause.
   */
  function release(resident: Resident, ranMs: number | null, probe = false): void {
    if (probe && resident.pause) resident.pause.probing = false
    const state = resident.serves
    resident.leases--
    resident.alone = false
    resident.lastUsedAt = effects.now()
    if (ranMs !== null) {
      state.durations.runMs = movingAverage(state.durations.runMs, ranMs)
      if (!resident.hasSucceeded) {
        resident.hasSucceeded = true
        state.failures = null
        effects.answered?.(resident)
      }
    }
    if (resident.state !== 'ready') return
    if (state.residents.length > 1 && !reconciler.isClosed()) leaveIfSurplus(resident)
    if (resident.draining === null && queue.waits(state.model.id)) queue.serve(state.model.id)
    if (resident.leases > 0) return
    if (states.leaves(resident)) residents.stop(resident, leavingText(resident))
    reconciler.run()
    if (resident.state === 'ready' && resident.leases === 0) reconciler.wakeWhenIdle(resident)
  }

  /** Loads what the configuration keeps loaded, and decides again for every waiting model. */
  function refresh(): void {
    for (const state of all.values()) reconciler.addIfNeeded(state)
    reconciler.run()
  }

  return {
    upsert: all.upsert,
    take,
    takeOf,
    occupy,
    /** Books an engine that an earlier server has loaded. It is `ready` or `startFailed` when it was asked. */
    takeOver: (resident: Resident): void => residents.add(resident),
    demandChanged,
    load,
    release,
    share,
    ...engineEvents(effects, rules, residents, reconciler),
    /** Ends every engine of the model: idle ones at once, the others after their requests. */
    unload(modelId: string): void {
      const state = all.get(modelId)
      if (state) states.refuseLoads(state, () => states.loadCancelled(modelId))
      if (state) unloadAll(state)
      // Waiting requests load it again.
      if (state) reconciler.addIfNeeded(state)
      reconciler.run()
    },
    removeModel(modelId: string): void {
      all.remove(modelId)
      queue.refuse(modelId, () => states.notOffered(modelId), Number.POSITIVE_INFINITY)
      reconciler.run()
    },
    /**
     * The devices have changed. `needed`: bytes that should be free on some because other programs take more of them; idle
     * engines that are not kept loaded leave for that.
     */
    makeRoom(needed: ReadonlyMap<string, number>): void {
      for (const [device, bytes] of needed)
        for (const engineId of reconciler.idleEngines(device, bytes))
          residents.stop(residents.get(engineId), `another program takes the memory of ${device}`)
      refresh()
    },
    refresh,
    /**
     * Other devices are paused than before. Engines on paused ones leave, idle and starting ones at once, the others after their
     * requests or, with `atOnce`, with them. Those that have not left when their devices are used again stay.
     */
    pausesChanged({ atOnce }: { atOnce: boolean }): void {
      const paused = new Set(capacities().flatMap(({ id, pause }) => (pause ? [id] : [])))
      for (const resident of residents.all()) {
        if (resident.state === 'stopping') continue
        const isPaused = resident.devices.some(id => paused.has(id))
        if (!isPaused && resident.draining === 'pause') resident.draining = null
        if (!isPaused) continue
        // One that is to be unloaded leaves in any case.
        if (resident.draining !== 'unload') resident.draining = 'pause'
        const reason = pausedText(resident)
        // A pause of a device ends no engine of a pool.
        const kill = atOnce && reason === devicePaused
        if (resident.leases === 0 || kill) residents.stopForDevice(resident, reason, kill)
      }
      reconciler.beginAnew()
      for (const state of all.values()) reconciler.addIfNeeded(state)
      reconciler.run()
    },
    /**
     * Running executions need other models next than before: how many need each. The map may change later, and this is called
     * again when it has other keys.
     */
    upcoming(models: ReadonlyMap<string, number>): void {
      reconciler.setUpcoming(models, all.values())
      this.tick()
    },
    /** How many running executions need the model next. */
    runsNext: reconciler.runsNext,
    tick(): void {
      const now = effects.now()
      reconciler.woken()
      for (const state of all.values())
        for (const resident of states.liveResidents(state)) {
          reconciler.serveAfterPause(resident, now)
          reconciler.succeed(resident, now)
          if (now >= (reconciler.idleUntil(resident) ?? Number.POSITIVE_INFINITY)) {
            residents.stop(startingSuccessor(resident), 'the engine whose place it should take is idle')
            reconciler.leave(resident, 'idle')
          } else reconciler.wakeWhenIdle(resident)
        }
      reconciler.run()
    },
    /**
     * Another server decides about engines from now on: none is loaded or ended here. Requests that wait for an engine which is
     * ready are served by it as it becomes free, all others are refused.
     */
    settle(): void {
      reconciler.settle()
      for (const state of all.values()) if (!isServedOn(state)) reconciler.refuse(state, states.modelsClosed)
    },
    /** Refuses all waiting and all further requests; engines keep running. */
    close(): void {
      reconciler.close()
      for (const state of all.values()) reconciler.refuse(state, states.modelsClosed)
    },
    /** Ends every engine but those for which `stays` holds. */
    stopAll(reason: string, stays: (resident: Resident) => boolean): void {
      for (const resident of residents.all()) if (!stays(resident)) residents.stop(resident, reason)
    },
    residents: residents.all,
    find: (modelId: string): ModelState | undefined => all.get(modelId),
    known: all.ids,
    states: all.values,
    activity(state: ModelState) {
      const unfit = unfitReason(state.placement, capacities())
      const expected = unfit === null && !state.isUnplaceable ? reconciler.expected(state) : null
      const pause = reconciler.pauseOf(state)?.reason ?? null
      return activityOf(state, { now: effects.now(), rules: rules.backoff, unfit, expected, pause })
    },
    plan: reconciler.plan,
    /** Milliseconds of the last `waitedMs` in which this resident was loading. */
    loadedMs({ readyAt, startedAt }: Resident, waitedMs: number): number {
      const now = effects.now()
      return readyAt === null ? 0 : Math.max(0, Math.min(readyAt, now) - Math.max(startedAt, now - waitedMs))
    },
  }
}

/** Why an engine on a paused device ends. */
export const devicePaused = 'its device is paused'

export type Residency = ReturnType<typeof openResidency>
