import { unknownLoadMs } from '../../core/jobs/waiting-calls.ts'
import { movingAverage } from '../../core/moving-average.ts'
import { saysGpuError, saysOutOfMemory, saysTooLarge } from '../../core/tasks/protocols/engine-text.ts'
import { formatBytes } from '../engines/gguf/sizing.ts'
import type { SourceFault } from '../estimate/source-check.ts'
import type { ResidencyRules } from './advance.ts'
import { addFailure } from './backoff.ts'
import type { ParkedMemory, PoolDurations, Resident } from './model-state.ts'
import * as states from './model-state.ts'
import { isAsleep } from './model-state.ts'
import { parkedBooking } from './parking.ts'
import type { Reconciler } from './reconciler.ts'
import type { Effects, Residents } from './residents.ts'
import { hasSuccessor, predecessorOf, startingSuccessor } from './successor.ts'
import { isBackReason, lostReason, lostWith, replacementAt } from './unreachable.ts'

/**
 * For how long an engine stays whose callers have all left while it was loading: those that were refused come again when
 * it should be ready, in whole seconds, and would otherwise find that it has been evicted. Milliseconds.
 */
const keptMs = { least: 2_000, most: 15_000 }
/** For how long a model prefers other devices after an error of a GPU. Milliseconds. */
const avoidMs = 10 * 60_000
/** Bytes that an engine gets more than were free when it ran out of memory: an idle engine is then evicted for it. */
const moreBytes = 2 ** 20
/** By how much the need of a layout seems to be underestimated with which an engine ran out of all memory that is free. */
const layoutFactor = 9 / 8
/** For how long its layouts are planned for less memory then: another program may have had it for a while. Milliseconds. */
const plannedMs = 60 * 60_000

interface StartFailure {
  /** Why no start can succeed. */
  fault?: SourceFault | undefined
  /** Its machine has failed, which may run it still. */
  isLost?: boolean
}

/** What engines report, each event as a method. Events of engines that no longer exist change nothing. */
export function engineEvents(
  effects: Pick<Effects, 'now' | 'loaded' | 'ranOut' | 'gpuFailed' | 'parkingMeasured'>,
  rules: ResidencyRules,
  residents: Residents,
  reconciler: Reconciler,
) {
  /** `isLost`: its machine may have failed. One that has worked is then replaced without delay. */
  function failed(resident: Resident, reason: string, now: number, isLost = false): void {
    const state = resident.serves
    const isProven = states.isProven(resident, now, rules)
    if (resident.longer && !isProven) state.keepsFewest = true
    const before = isProven ? null : state.failures
    const failures = addFailure(before, reason, now, rules.backoff)
    state.failures = isLost && isProven ? { ...failures, retryAt: now } : failures
    state.engineFailures++
    state.startedAgain = false
    if (saysGpuError(reason)) {
      state.avoided = { devices: resident.devices, until: now + avoidMs }
      effects.gpuFailed?.(resident)
    }
    if (reconciler.needsEngine(state)) reconciler.wakeBy(state.failures.retryAt)
  }

  /**
   * After a load that ran out of memory, the next one begins at once with more than is free now, so that an idle engine is
   * evicted for it; after an error of the GPU, on other devices; and after the failure of its machine. Once for each failure
   * that counts. One that had more cards for a longer context and is not lost gets the fewest, whatever the reason.
   */
  function startsAgain(resident: Resident, reason: string, isLost: boolean): boolean {
    const state = resident.serves
    if (isLost && !state.startedAgain) {
      state.startedAgain = true
      state.engineFailures++
      return true
    }
    const { devices } = resident
    const isFull = saysOutOfMemory(reason)
    if (resident.longer && !state.startedAgain) {
      state.keepsFewest = true
      state.startedAgain = true
      state.engineFailures++
      return true
    }
    if (state.startedAgain || devices.length === 0 || (!isFull && !saysGpuError(reason))) return false
    const more = Math.max(state.placement.bytes, reconciler.freeBytes(resident) + moreBytes)
    // Another program has taken the memory meanwhile: the model waits for memory elsewhere, and needs no more than before.
    const isTaken = isFull && more === state.placement.bytes
    const placement = isFull ? { ...state.placement, bytes: more } : state.placement
    const decision = reconciler.place({ ...placement, mayEvict: true, avoid: isFull ? [] : devices })
    if (decision.do === 'load' ? !isFull && decision.devices.some(id => devices.includes(id)) : !isTaken) return false
    if (decision.do === 'refuse') return false
    state.startedAgain = true
    state.engineFailures++
    state.placement = placement
    if (isTaken) return true
    if (isFull) effects.ranOut?.(resident, more, true)
    else {
      state.avoided = { devices, until: effects.now() + avoidMs }
      effects.gpuFailed?.(resident)
    }
    return true
  }

  /** The reason of a load for which the memory is too small, with what to do, and with how much was free. */
  function withAdvice(reason: string, resident: Resident): string {
    if (resident.devices.length === 0) return reason
    if (saysTooLarge(reason))
      return `${reason} Mostly it is the cache of one layer for all requests: reduce its context_length or concurrency, or set kv_type: q8_0.`
    if (!saysOutOfMemory(reason)) return reason
    return `${reason} ${formatBytes(reconciler.freeBytes(resident))} were free for it: reduce its context_length or concurrency, or use a smaller model.`
  }

  /** Lets the next layouts use less, where infer chooses them and this one was too large. Returns whether it does. */
  function planLess(resident: Resident, reason: string, now: number): boolean {
    const { bytes, estimate = bytes, plan, kind } = resident.placement
    const isTooMuch = saysOutOfMemory(reason) || saysTooLarge(reason)
    if (!isTooMuch || !plan?.layout || resident.devices.length === 0) return false
    const { cache, gpu, cpu } = plan.layout.need
    // Half of the cache is a context of half the length. What the process itself takes cannot become less.
    const less = Math.max(cache / 2, (kind === 'cpu' ? cpu : gpu) * (1 - 1 / layoutFactor))
    const bytesEach = (estimate - less) / resident.devices.length
    resident.serves.planned = { bytesEach, until: now + plannedMs }
    effects.ranOut?.(resident, bytes * layoutFactor, false)
    return true
  }

  function loadedInPool(resident: Resident, { queueMs, loadMs }: PoolDurations): void {
    const { serves, placement } = resident
    const { pool } = placement
    if (pool === undefined) return
    resident.queuedMs = queueMs
    const { durations } = serves
    const before = durations.inPools[pool]
    const now = {
      queueMs: movingAverage(before?.queueMs ?? null, queueMs),
      loadMs: movingAverage(before?.loadMs ?? null, loadMs),
    }
    durations.inPools = { ...durations.inPools, [pool]: now }
  }

  /** The engine whose place this one takes accepts no more requests, and ends after those that it has. */
  function succeeds(resident: Resident): void {
    const before = predecessorOf(resident)
    if (before?.state !== 'ready' || before.unreachable !== null) return
    before.draining ??= 'succeeded'
    if (before.leases === 0) residents.stop(before, hasSuccessor)
  }

  /** Engines end that cannot be reached, in whose pool this one can be: nobody knows how they have failed. */
  function endLost(resident: Resident): void {
    for (const lost of lostWith(resident)) {
      failed(lost, lostReason, effects.now(), true)
      residents.stop(lost, lostReason, true)
    }
  }

  function remove(resident: Resident): void {
    residents.remove(resident)
    reconciler.addIfNeeded(resident.serves)
  }

  return {
    /** The devices were measured before an engine starts. Where its memory is gone, its model is placed anew. */
    settled(engineId: string): void {
      const resident = residents.get(engineId)
      if (resident?.state !== 'starting' || reconciler.fits(resident)) return residents.settled(engineId)
      if (resident.wakes) residents.stop(resident, 'another program has taken its memory')
      else {
        resident.serves.engineStarts--
        remove(resident)
      }
      reconciler.addIfNeeded(resident.serves)
      reconciler.run()
    },
    /**
     * An engine can work. `parking`: what it uses while it is parked, if it was started so that it can be. `queueMs`: how long
     * it has waited for a machine of its pool.
     */
    ready(engineId: string, parking: ParkedMemory | null = null, queueMs = 0): void {
      const resident = residents.get(engineId)
      if (resident?.state !== 'starting') return
      resident.parking ??= parking
      const now = effects.now()
      resident.state = 'ready'
      resident.readyAt = now
      resident.lastUsedAt = now
      resident.neededAt = now
      resident.serves.startedAgain = false
      const { durations } = resident.serves
      const wasKnown = states.loadIsKnown(resident.serves)
      const loadMs = now - (resident.launchedAt ?? resident.startedAt) - queueMs
      if (resident.wakes) {
        resident.wakes = false
        durations.wakeMs = movingAverage(durations.wakeMs, loadMs)
        effects.parkingMeasured?.(resident)
      } else if (!resident.takenOver) {
        durations.loadMs = movingAverage(durations.loadMs, loadMs)
        loadedInPool(resident, { queueMs, loadMs })
        effects.loaded?.(resident, loadMs)
      }
      endLost(resident)
      succeeds(resident)
      const demand = reconciler.demandOf(resident.serves)
      resident.owed = demand ? demand.interactive + demand.background : 0
      const isAwaited = demand !== undefined || resident.serves.loadWaiters.length > 0
      if (isAwaited) resident.ahead = false
      else if (!resident.ahead && !resident.takenOver && !predecessorOf(resident)) {
        const half = Math.min(keptMs.most, Math.max(keptMs.least, loadMs / 2))
        resident.keptUntil = now + (wasKnown ? half : unknownLoadMs + keptMs.least)
        reconciler.wakeBy(resident.keptUntil)
      }
      // Before other models are placed: one that waits longer would evict it before its first request.
      reconciler.serve(resident.serves)
      // The requests of the server before have ended meanwhile.
      if (states.leaves(resident) && resident.leases === 0) residents.stop(resident, 'its configuration has changed')
      reconciler.add(resident.serves)
      reconciler.succeed(resident, now)
      reconciler.run()
      if (resident.leases === 0) reconciler.wakeWhenIdle(resident)
    },
    /** Nobody listens at the address of a ready engine any more: its model gets another one where it needs one. */
    unreachable(engineId: string): void {
      const resident = residents.get(engineId)
      if (resident?.state !== 'ready' || resident.unreachable !== null) return
      const { serves } = resident
      resident.unreachable = { replaceAt: replacementAt(serves.falseAlarms, effects.now(), rules.backoff) }
      reconciler.addIfNeeded(serves)
      reconciler.run()
    },
    /** It answers again: it serves on, and the one that was being started in its place ends. */
    reached(engineId: string): void {
      const resident = residents.get(engineId)
      if (resident?.state !== 'ready' || resident.unreachable === null) return
      const state = resident.serves
      resident.unreachable = null
      state.falseAlarms = addFailure(state.falseAlarms, isBackReason, effects.now(), rules.backoff)
      // One whose time ends needs its successor all the same.
      if (!resident.isEnding) {
        residents.stop(startingSuccessor(resident), isBackReason, true)
        resident.successor = null
      }
      reconciler.serve(state)
      reconciler.add(state)
      reconciler.run()
    },
    /** The machine of an engine ends it at this time; null: there is no such time any more. */
    endsAt(engineId: string, at: number | null): void {
      const resident = residents.get(engineId)
      if (!resident) return
      resident.endsAt = at
      resident.isEnding &&= at !== null
      reconciler.succeed(resident, effects.now())
      reconciler.run()
    },
    /** A parked engine has given its memory back, and keeps `cardBytes` of each card; null where that is not known. */
    parked(engineId: string, ms: number, cardBytes: number | null): void {
      const resident = residents.get(engineId)
      if (resident?.state !== 'parked' || resident.phase !== 'parking') return
      const { durations } = resident.serves
      durations.parkMs = movingAverage(durations.parkMs, ms)
      if (cardBytes !== null) {
        resident.parking = { ...resident.parking!, cardBytes }
        Object.assign(resident, parkedBooking({ ...resident, devices: resident.awake!.devices }))
      }
      effects.parkingMeasured?.(resident)
      residents.parked(resident)
      reconciler.run()
    },
    /** An engine could not be parked or did not wake: it ends, and the next one is started anew. */
    parkFailed(engineId: string, reason: string): void {
      const resident = residents.get(engineId)
      if (!resident || !isAsleep(resident)) return
      resident.serves.parkingFault = reason
      residents.stop(resident, reason, true)
      reconciler.addIfNeeded(resident.serves)
      reconciler.run()
    },
    /** An engine could not be started; none of its processes is left, unless it is lost. */
    startFailed(engineId: string, reason: string, { fault, isLost = false }: StartFailure = {}): void {
      const resident = residents.get(engineId)
      if (!resident) return
      const now = effects.now()
      // One that was taken over has never been started here.
      const stopped = resident.state === 'stopping' || resident.takenOver
      const state = resident.serves
      const isSecond = state.startedAgain
      remove(resident)
      if (!stopped && (fault || !startsAgain(resident, reason, isLost))) {
        failed(resident, withAdvice(reason, resident), now)
        // With a smaller layout those who wait get one more start.
        const triesLess = planLess(resident, reason, now) && !isSecond && !fault
        if (triesLess) state.startedAgain = true
        if (fault) {
          state.placement = { ...state.placement, loadFault: fault }
          // No later start is waited for: the placement refuses at once.
          state.failures = null
        }
        // Who came while it was starting did not have the whole time of the start, and waits for the next one.
        const waitedMs = Math.max(0, now - resident.startedAt - rules.backoff.firstMs)
        if (states.liveResidents(state).length === 0 && !triesLess)
          reconciler.refuse(
            state,
            () =>
              fault ? states.unplaceable(fault.text, state.placement) : states.notStarted(state, state.failures!, now),
            undefined,
            fault ? 0 : waitedMs,
          )
      }
      reconciler.run()
    },
    /** An engine has ended, stopped by infer or by itself; none of its processes is left. `isLost`: see `ProcessExit`. */
    exited(engineId: string, reason: string, isLost = false): void {
      const resident = residents.get(engineId)
      if (!resident) return
      // One that nobody used is started anew.
      const wasAsleep = isAsleep(resident)
      if (wasAsleep && resident.wakes) resident.serves.parkingFault = reason
      const hasFailed = !wasAsleep && resident.state !== 'stopping'
      if (hasFailed) failed(resident, reason, effects.now(), isLost)
      remove(resident)
      // Sized anew only where the model has no engine.
      if (hasFailed) planLess(resident, reason, effects.now())
      reconciler.run()
    },
    /**
     * A device has got a fault: its engines end, at once if they cannot work any more, else after their requests. Their models
     * are loaded elsewhere.
     */
    deviceFailed(id: string, reason: string, isFatal: boolean): void {
      for (const resident of residents.all()) {
        if (!resident.devices.includes(id) || resident.state === 'stopping') continue
        if (!isFatal && resident.leases > 0) resident.draining = 'unload'
        else residents.stopForDevice(resident, `${id} is not used any more: ${reason}`, isFatal)
        reconciler.addIfNeeded(resident.serves)
      }
      reconciler.run()
    },
    /** An engine wants no requests for this long. */
    paused(engineId: string, ms: number): void {
      const resident = residents.get(engineId)
      if (!resident) return
      const until = Math.max(effects.now() + ms, resident.pause?.until ?? 0)
      resident.pause = { until, probing: false }
      reconciler.wakeBy(until)
      reconciler.add(resident.serves)
      reconciler.run()
    },
    /** An engine has accepted the first request after its pause. */
    accepted(engineId: string): void {
      const resident = residents.get(engineId)
      if (!resident?.pause?.probing) return
      resident.pause = null
      reconciler.serve(resident.serves)
    },
    /** An engine makes no progress: it is killed and counts as failed. */
    stuck(engineId: string, reason: string): void {
      const resident = residents.get(engineId)
      if (resident?.state !== 'ready') return
      failed(resident, reason, effects.now())
      residents.stop(resident, reason, true)
    },
    /** An engine continues a cancelled request: it is killed. That is no failure, so the next start is not delayed. */
    unresponsive: (engineId: string, reason: string): void => residents.stop(residents.get(engineId), reason, true),
    /**
     * Sets the measured memory of an engine, on each of its devices. A booking only grows: booking too little makes the next
     * engine fail.
     */
    measured(engineId: string, bytes: readonly number[]): void {
      const resident = residents.get(engineId)
      if (!resident) return
      // What is parked was measured when it was.
      if (resident.state === 'parked') return
      resident.usedBytes = bytes.reduce((sum, used) => sum + used, 0)
      resident.shares = resident.shares.map((booked, at) => Math.max(booked, bytes[at] ?? 0))
      resident.bytes = resident.shares.reduce((sum, share) => sum + share, 0)
    },
  }
}
