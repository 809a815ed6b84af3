import { movingAverage as blend } from '../core/moving-average.ts'
import { nextStep, occupantsOf, type Rules } from './advance.ts'
import { failedAgain } from './backoff.ts'
import { defaultRules, type Effects } from './effects.ts'
import type { Line, LineWish, Resident, Waiter } from './line.ts'
import * as lines from './line.ts'
import type { Place } from './place.ts'
import { openRoster } from './roster.ts'

/**
 * Which models are loaded where: a state machine with one writer. Events come in as calls, decisions go out as
 * effects, and nothing here waits, reads a clock of its own or looks at a process. Lines and residents are changed
 * from here only; others may look. The rules and their reasons are in README.md.
 */
export function openResidency(effects: Effects, places: () => readonly Place[], rules: Rules = defaultRules) {
  const all = openRoster({
    now: effects.now,
    retired(of) {
      needy.delete(of)
      dismiss(of)
    },
  })
  const residents = new Map<string, Resident>()
  /** Lines that want something they do not have: the only ones a change can matter to. */
  const needy = new Set<Line>()
  let closing = false
  let wakeAt = Number.POSITIVE_INFINITY

  function arm(at: number): void {
    if (at >= wakeAt) return
    wakeAt = at
    effects.wake(at)
  }

  /** Ends every engine: at once those that do nothing, the others after their requests. */
  function dismiss(of: Line): void {
    of.dismissed = true
    for (const resident of lines.alive(of)) {
      if (resident.leases > 0) resident.draining = 'unload'
      else stop(resident, of.retired ? 'the configuration has changed' : 'unloaded')
    }
  }

  /** A slot right now, or undefined. The way of nearly every request, so it does nothing but count. */
  function take(modelId: string): Resident | undefined {
    const of = all.get(modelId)
    if (of === undefined || of.waiting.length > 0) return undefined
    const resident = lines.freeResident(of)
    if (resident) resident.leases++
    return resident
  }

  /** Queues for a slot or for the model to be loaded; the answer gives the place in the queue up. */
  function request(asked: Line, want: LineWish): () => void {
    const since = effects.now()
    const waiter: Waiter = { background: false, ...want, since, deadline: since + want.waitMs }
    const of = asked.retired ? all.get(asked.model.id) : asked
    if (closing || !of) {
      waiter.refuse(closing ? lines.shuttingDown() : lines.notOffered(asked.model.id))
      return () => {}
    }
    of.dismissed = false
    // The one too many still counts as demand: with max_queue 0 it is what gets the model loaded.
    // What works off a queue of its own holds a few places only, and none that others could have had.
    const counted = (one: Waiter) => one.slot && !one.background
    const full = counted(waiter) && of.waiting.filter(counted).length >= of.model.max_queue
    of.waiting.push(waiter)
    needy.add(of)
    pump()
    const at = of.waiting.indexOf(waiter)
    if (at >= 0 && (full || want.waitMs <= 0)) {
      of.waiting.splice(at, 1)
      waiter.refuse(full && !lines.loading(of) ? lines.queueFull(of, since) : lines.tooLate(of, since))
    } else if (at >= 0) arm(waiter.deadline)
    return () => {
      // It may have gone over to the line that came after this one.
      const waiting = all.get(of.model.id)?.waiting ?? []
      const place = waiting.indexOf(waiter)
      if (place < 0) return
      waiting.splice(place, 1)
      pump()
    }
  }

  /** Gives a slot back. `ranMs` is null for a request that did not end well; it teaches nothing. */
  function release(resident: Resident, ranMs: number | null): void {
    const of = resident.line
    const now = effects.now()
    resident.leases--
    resident.lastUsedAt = now
    if (ranMs !== null) {
      of.pace.runMs = blend(of.pace.runMs, ranMs)
      if (!resident.useful) {
        resident.useful = true
        of.failures = null
      }
    }
    if (resident.state !== 'ready') return
    if (resident.draining === null && of.waiting.length > 0) return lines.handOut(of, now)
    if (resident.leases > 0) return
    if (resident.draining === 'unload') stop(resident, 'unloaded')
    if (needy.size > 0) pump()
    if (resident.state === 'ready' && resident.leases === 0) armIdle(resident)
  }

  const armIdle = (resident: Resident): void => arm(lines.idleUntil(resident) ?? Number.POSITIVE_INFINITY)

  /** Brings every line that wants something as far as it can get now; whoever has waited longest comes first. */
  function pump(): void {
    if (closing) return
    const now = effects.now()
    for (const resident of residents.values()) if (resident.draining === 'turn') resident.draining = null
    const inOrder = [...needy].sort((a, b) => (a.waiting[0]?.since ?? now) - (b.waiting[0]?.since ?? now))
    for (const of of inOrder) advance(of, now)
  }

  function advance(of: Line, now: number): void {
    lines.handOut(of, now)
    const step = nextStep(of, now, occupantsOf(residents.values()), places(), rules)
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
        const vain = (waiter: Waiter) => step.refuse === 'all' || waiter.deadline <= step.until
        lines.refuse(of, () => lines.broken(of, of.failures!, now), vain)
        return
      }
      case 'refuse':
        if (step.refuse === 'all') lines.refuse(of, () => lines.unplaceable(step.reason))
        return
      case 'wait':
        if (step.until !== null) arm(step.until)
        return
      case 'take turns':
        for (const id of step.drain) residents.get(id)!.draining ??= 'turn'
        return
      case 'load':
        for (const id of step.evict) stop(residents.get(id), `to make room for '${of.model.id}'`)
        load(of, step.devices, now)
    }
  }

  function load(of: Line, devices: readonly string[], now: number): void {
    const resident = lines.newResident(of, effects.newEngineId(), devices, now)
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
    const of = resident.line
    of.residents = of.residents.filter(other => other !== resident)
    if (lines.shortage(of) > 0 && !closing) needy.add(of)
    for (const other of residents.values()) if (other.phase === 'clearing' && other.state === 'starting') begin(other)
  }

  function failed(resident: Resident, reason: string, now: number): void {
    const of = resident.line
    of.failures = failedAgain(lines.provedItself(resident, now, rules) ? null : of.failures, reason, now, rules.backoff)
    of.engineFailures++
    if (of.waiting.length > 0 || lines.shortage(of) > 0) arm(of.failures.retryAt)
  }

  return {
    line: all.line,
    take,
    request,
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
      const { pace } = resident.line
      pace.loadMs = blend(pace.loadMs, now - resident.startedAt)
      effects.loaded?.(resident.line.model.id, now - resident.startedAt)
      needy.add(resident.line)
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
      const of = resident.line
      if (!asked && lines.alive(of).length === 0) lines.refuse(of, () => lines.notStarted(of, of.failures!, now))
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
    deaf: (engineId: string, reason: string): void => stop(residents.get(engineId), reason, true),
    /** What an engine turned out to take; a booking only grows, for too little is what kills the next one. */
    measured(engineId: string, bytes: number): void {
      const resident = residents.get(engineId)
      if (resident) resident.bytes = Math.max(resident.bytes, bytes)
    },
    /** Ends every engine of the model: at once those that do nothing, the others after their requests. */
    unload(modelId: string): void {
      const of = all.get(modelId)
      if (of) lines.refuseLoads(of)
      if (of) dismiss(of)
      pump()
    },
    drop(modelId: string): void {
      all.drop(modelId)
      pump()
    },
    /** Sees to it that what the configuration keeps loaded is loaded, and looks again at everything that waits. */
    refresh(): void {
      if (closing) return
      for (const of of all.values()) if (lines.shortage(of) > 0 || of.waiting.length > 0) needy.add(of)
      pump()
    },
    tick(): void {
      const now = effects.now()
      wakeAt = Number.POSITIVE_INFINITY
      for (const of of all.values()) {
        lines.refuseLate(of, now)
        for (const resident of lines.alive(of)) {
          if (now >= (lines.idleUntil(resident) ?? Number.POSITIVE_INFINITY)) stop(resident, 'idle')
          else armIdle(resident)
        }
        for (const waiter of of.waiting) arm(waiter.deadline)
      }
      pump()
    },
    /** Refuses everybody who waits and everybody who comes; engines are left as they are. */
    close(): void {
      closing = true
      for (const of of all.values()) lines.refuse(of, lines.shuttingDown)
      needy.clear()
    },
    /** Ends every engine now. */
    stopAll(reason: string): void {
      for (const resident of residents.values()) stop(resident, reason)
    },
    residents: (): readonly Resident[] => [...residents.values()],
    find: (modelId: string): Line | undefined => all.get(modelId),
    known: all.ids,
    activity: (of: Line) => lines.activityOf(of, effects.now(), rules.backoff),
  }
}

export type Residency = ReturnType<typeof openResidency>
