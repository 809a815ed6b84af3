import type { Failure } from '../core/failure.ts'
import type { Demand, SlotQueue } from '../core/models/fleet.ts'
import { movingAverage } from '../core/moving-average.ts'
import { byUrgency, nextStep, occupantsOf, type Rules } from './advance.ts'
import { failedAgain } from './backoff.ts'
import { defaultRules, type Effects } from './effects.ts'
import type { LoadWaiter, ModelState, Resident } from './model-state.ts'
import * as states from './model-state.ts'
import { openModelStates } from './model-states.ts'
import type { DeviceCapacity } from './place.ts'

/**
 * Which models are loaded where: a state machine with one writer. Events come in as calls, decisions go out as
 * effects, and nothing here waits, reads a clock of its own or looks at a process. Model states and residents are
 * changed from here only. Requests wait in `queue`, which says what it has for each model and is offered every free
 * slot. The rules and their reasons are in README.md.
 */
export function openResidency(
  effects: Effects,
  capacities: () => readonly DeviceCapacity[],
  queue: SlotQueue,
  rules: Rules = defaultRules,
) {
  const all = openModelStates({
    now: effects.now,
    retired(of) {
      needy.delete(of)
      unloadAll(of)
    },
  })
  const residents = new Map<string, Resident>()
  /** Models that want something they do not have: the only ones a change can matter to. */
  const needy = new Set<ModelState>()
  let closing = false
  let wakeAt = Number.POSITIVE_INFINITY

  function arm(at: number): void {
    if (at >= wakeAt) return
    wakeAt = at
    effects.wake(at)
  }

  const demandOf = (of: ModelState): Demand | undefined => (of.retired ? undefined : queue.demand(of.model.id))

  /** Ends every engine: idle ones at once, the others after their requests. */
  function unloadAll(of: ModelState): void {
    of.unloaded = true
    for (const resident of states.liveResidents(of)) {
      if (resident.leases > 0) resident.draining = 'unload'
      else stop(resident, of.retired ? 'the configuration has changed' : 'unloaded')
    }
  }

  /** Takes a free slot, or returns undefined. Nearly every request comes this way, so it does nothing but count. */
  function take(modelId: string): Resident | undefined {
    const of = all.get(modelId)
    const resident = of && states.freeResident(of)
    if (resident) resident.leases++
    return resident
  }

  /** Requests wait for the model, or fewer than before: it gets as far as it can now. */
  function demandChanged(of: ModelState): void {
    if (closing) return queue.refuse(of.model.id, states.shuttingDown, Number.POSITIVE_INFINITY)
    if (of.retired) return
    if (queue.demand(of.model.id)) of.unloaded = false
    needy.add(of)
    pump()
  }

  /** Waits for the model to be loaded; the answer ends the wait. */
  function load(asked: ModelState, waiter: Omit<LoadWaiter, 'since'>): () => void {
    const of = asked.retired ? all.get(asked.model.id) : asked
    if (closing || !of) {
      waiter.refuse(closing ? states.shuttingDown() : states.notOffered(asked.model.id))
      return () => {}
    }
    const one: LoadWaiter = { ...waiter, since: effects.now() }
    of.unloaded = false
    of.loadWaiters.push(one)
    needy.add(of)
    pump()
    return () => {
      // A successor of the state may have taken it over.
      const waiters = all.get(of.model.id)?.loadWaiters ?? []
      const at = waiters.indexOf(one)
      if (at < 0) return
      waiters.splice(at, 1)
      pump()
    }
  }

  /** Gives a slot back. `ranMs` is null for a request that did not end well; it teaches nothing. */
  function release(resident: Resident, ranMs: number | null): void {
    const of = resident.serves
    resident.leases--
    resident.lastUsedAt = effects.now()
    if (ranMs !== null) {
      of.pace.runMs = movingAverage(of.pace.runMs, ranMs)
      if (!resident.useful) {
        resident.useful = true
        of.failures = null
      }
    }
    if (resident.state !== 'ready') return
    if (resident.draining === null && queue.waits(of.model.id)) queue.serve(of.model.id)
    if (resident.leases > 0) return
    if (resident.draining === 'unload') stop(resident, 'unloaded')
    if (needy.size > 0) pump()
    if (resident.state === 'ready' && resident.leases === 0) armIdle(resident)
  }

  const armIdle = (resident: Resident): void => arm(states.idleUntil(resident) ?? Number.POSITIVE_INFINITY)

  /** Brings every model that wants something as far as it can get now. */
  function pump(): void {
    if (closing) return
    const now = effects.now()
    for (const resident of residents.values()) if (resident.draining === 'turn') resident.draining = null
    for (const of of byUrgency(needy, demandOf, now, rules)) advance(of, now)
  }

  function refuse(of: ModelState, failure: () => Failure, withinMs = Number.POSITIVE_INFINITY): void {
    if (withinMs === Number.POSITIVE_INFINITY) states.refuseLoads(of, failure)
    if (!of.retired) queue.refuse(of.model.id, failure, withinMs)
  }

  function advance(of: ModelState, now: number): void {
    states.resolveLoads(of)
    if (states.freeResident(of) && !of.retired) queue.serve(of.model.id)
    const step = nextStep(of, demandOf(of), now, occupantsOf(residents.values()), capacities(), rules)
    of.refused = step.do === 'refuse'
    if (step.do !== 'stay') of.reason = 'reason' in step ? step.reason : null
    switch (step.do) {
      case 'rest':
        needy.delete(of)
        return
      case 'stay':
        return
      case 'back off': {
        arm(step.until)
        if (step.refuse === 'none') return
        refuse(of, () => states.notStarted(of, of.failures!, now), step.refuse === 'all' ? undefined : step.until - now)
        return
      }
      case 'refuse':
        if (step.refuse === 'all') refuse(of, () => states.unplaceable(step.reason))
        return
      case 'wait':
        if (step.until !== null) arm(step.until)
        return
      case 'take turns':
        for (const id of step.drain) residents.get(id)!.draining ??= 'turn'
        return
      case 'load':
        for (const id of step.evict) stop(residents.get(id), `to make room for '${of.model.id}'`)
        start(of, step.devices, now)
    }
  }

  function start(of: ModelState, devices: readonly string[], now: number): void {
    const resident = states.newResident(of, effects.newEngineId(), devices, now)
    residents.set(resident.engineId, resident)
    of.residents.push(resident)
    of.engineStarts++
    begin(resident)
  }

  /** Its memory was promised by engines that are still leaving: they go first, then the card must show it. */
  function begin(resident: Resident): void {
    const leaving = [...residents.values()].some(
      other => other.state === 'stopping' && other.devices.some(id => resident.devices.includes(id)),
    )
    if (leaving) resident.phase = 'clearing'
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
    const of = resident.serves
    of.residents = of.residents.filter(other => other !== resident)
    if (!closing && wants(of)) needy.add(of)
    for (const other of residents.values()) if (other.phase === 'clearing' && other.state === 'starting') begin(other)
  }

  const wants = (of: ModelState): boolean =>
    states.shortage(of) > 0 || of.loadWaiters.length > 0 || demandOf(of) !== undefined

  function failed(resident: Resident, reason: string, now: number): void {
    const of = resident.serves
    of.failures = failedAgain(
      states.provedItself(resident, now, rules) ? null : of.failures,
      reason,
      now,
      rules.backoff,
    )
    of.engineFailures++
    if (wants(of)) arm(of.failures.retryAt)
  }

  return {
    of: all.of,
    take,
    demandChanged,
    load,
    release,
    /** The devices show what was given back, or it has been waited for long enough. */
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
      const { pace } = resident.serves
      pace.loadMs = movingAverage(pace.loadMs, now - resident.startedAt)
      effects.loaded?.(resident.serves.model.id, now - resident.startedAt)
      needy.add(resident.serves)
      pump()
      if (resident.leases === 0) armIdle(resident)
    },
    /** An engine could not be started; nothing of it is left. */
    startFailed(engineId: string, reason: string): void {
      const resident = residents.get(engineId)
      if (!resident) return
      const now = effects.now()
      const asked = resident.state === 'stopping'
      if (!asked) failed(resident, reason, now)
      remove(resident)
      const of = resident.serves
      if (!asked && states.liveResidents(of).length === 0) refuse(of, () => states.notStarted(of, of.failures!, now))
      pump()
    },
    /** An engine has ended, asked to or not; nothing of it is left. */
    gone(engineId: string, reason: string): void {
      const resident = residents.get(engineId)
      if (!resident) return
      if (resident.state !== 'stopping') failed(resident, reason, effects.now())
      remove(resident)
      pump()
    },
    /** An engine does nothing any more although it lives: it is killed, and counts as failed. */
    stuck(engineId: string, reason: string): void {
      const resident = residents.get(engineId)
      if (resident?.state !== 'ready') return
      failed(resident, reason, effects.now())
      stop(resident, reason, true)
    },
    /** It goes on with what was given up: it is killed, which is no failure and so delays no other. */
    unresponsive: (engineId: string, reason: string): void => stop(residents.get(engineId), reason, true),
    /** What an engine turned out to take; a booking only grows, for too little is what kills the next one. */
    measured(engineId: string, bytes: number): void {
      const resident = residents.get(engineId)
      if (resident) resident.bytes = Math.max(resident.bytes, bytes)
    },
    /** Ends every engine of the model: idle ones at once, the others after their requests. */
    unload(modelId: string): void {
      const of = all.get(modelId)
      if (of) states.refuseLoads(of, () => states.unloadedFirst(modelId))
      if (of) unloadAll(of)
      // A request that waits loads it again.
      if (of && wants(of)) needy.add(of)
      pump()
    },
    drop(modelId: string): void {
      all.drop(modelId)
      queue.refuse(modelId, () => states.notOffered(modelId), Number.POSITIVE_INFINITY)
      pump()
    },
    /** Sees to it that what the configuration keeps loaded is loaded, and looks again at everything that waits. */
    refresh(): void {
      if (closing) return
      for (const of of all.values()) if (wants(of)) needy.add(of)
      pump()
    },
    tick(): void {
      const now = effects.now()
      wakeAt = Number.POSITIVE_INFINITY
      for (const of of all.values())
        for (const resident of states.liveResidents(of)) {
          if (now >= (states.idleUntil(resident) ?? Number.POSITIVE_INFINITY)) stop(resident, 'idle')
          else armIdle(resident)
        }
      pump()
    },
    /** Refuses everything that waits and everything that comes; engines are left as they are. */
    close(): void {
      closing = true
      for (const of of all.values()) refuse(of, states.shuttingDown)
      needy.clear()
    },
    /** Ends every engine now. */
    stopAll(reason: string): void {
      for (const resident of residents.values()) stop(resident, reason)
    },
    residents: (): readonly Resident[] => [...residents.values()],
    find: (modelId: string): ModelState | undefined => all.get(modelId),
    known: all.ids,
    activity: (of: ModelState) => states.activityOf(of, demandOf(of), effects.now(), rules.backoff),
    /** The part of the last `waitedMs` that went into loading this resident. */
    loadedMs(resident: Resident, waitedMs: number): number {
      const now = effects.now()
      return states.loadedDuring(resident, now - waitedMs, now)
    },
  }
}

export type Residency = ReturnType<typeof openResidency>
