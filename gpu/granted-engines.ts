import type { Failure } from '../core/failure.ts'
import type { Log } from '../core/log.ts'
import type { Lease } from '../core/models/fleet.ts'
import type { Model } from '../core/models/model.ts'
import type { GrantedEngine, SlotGrants } from '../core/models/slot-grants.ts'
import { failureOfEngine } from './connection-options.ts'
import { openEnergy } from './devices/energy.ts'
import { presetOf } from './presets/presets.ts'
import { EngineConnections } from './requests/connections.ts'
import { EngineLease, type LeasedEngine } from './requests/lease.ts'

/** Milliseconds after which slots that nobody uses go back. */
const idleMs = 2_000

interface Granted extends LeasedEngine {
  connections: EngineConnections
  /** Slots that no request uses now, and those that requests use. */
  free: number
  used: number
  /** The fewest that were free since the last look. */
  spare: number
  lookedAt: number
  /** When control was told last that the engine sends something. */
  toldAt: number
  isRecalled: boolean
  /** It had no slots at the last look, and has got none since. */
  wasEmpty: boolean
  runs: number
  ranMs: number
}

export interface GrantedEnginesOptions {
  find: (modelId: string) => Model | undefined
  /** Slots go back to control. `ranMs`: the mean of the requests that succeeded on the engine since the last time. */
  returned: (engineId: string, slots: number, ranMs: number | null) => void
  report: SlotGrants['report']
  progressed: SlotGrants['progressed']
  /** A request found no slot of the model. */
  lacking: (modelId: string) => void
  log: Log
}

/** The slots that control has granted to a gateway process. `look` returns those that nobody used for a while. */
export function openGrantedEngines({ find, returned, report, progressed, lacking, log }: GrantedEnginesOptions) {
  const byModel = new Map<string, Granted>()
  const byId = new Map<string, Granted>()
  const energy = openEnergy()

  function open(engine: GrantedEngine, model: Model) {
    const { engineId, modelId, endpoint, headers, devices, slots, isOwnProcess, sharesFolders, isChecked } = engine
    const connections = new EngineConnections({
      engineId,
      modelId,
      endpoint,
      headers: [...headers],
      noProgressMs: model.no_progress,
      keepAliveMs: presetOf(model).keepAliveMs,
      isOwnProcess,
      sharesFolders,
      failureOf: failureOfEngine(model),
      // Control counts the requests that an engine reports.
      healthPath: null,
      pollMs: 0,
      cancelGraceMs: 0,
      hasFreeSlot: () => true,
      unreached: isChecked ? () => report(engineId, 'unreached') : undefined,
      unresponsive() {},
      pauseRequested: pauseMs => report(engineId, { pauseMs }),
      accepted() {},
      stuck: () => report(engineId, 'stuck'),
      addressChanged: address => report(engineId, { address }),
      listenerThrew: thrown => log.error('A listener of an answer threw', { model: modelId }, thrown),
    })
    const serves = { model: { id: modelId } }
    const counts = {
      free: 0,
      used: 0,
      spare: 0,
      lookedAt: performance.now(),
      toldAt: performance.now(),
      isRecalled: false,
      wasEmpty: false,
      runs: 0,
      ranMs: 0,
    }
    return { engineId, devices: [...devices], slots, serves, connections, ...counts } satisfies Granted
  }

  function giveBack(granted: Granted, slots: number): void {
    if (slots === 0) return
    granted.free -= slots
    returned(granted.engineId, slots, granted.runs === 0 ? null : granted.ranMs / granted.runs)
    granted.runs = granted.ranMs = 0
  }

  /** Control says nothing of the end of an engine of which there are no slots here. */
  function forget(granted: Granted): void {
    const { id } = granted.serves.model
    byId.delete(granted.engineId)
    if (byModel.get(id) === granted) byModel.delete(id)
    granted.connections.close()
  }

  const onReleased = (granted: Granted, ranMs: number | null): void => {
    granted.free++
    granted.used--
    if (ranMs !== null) {
      granted.runs++
      granted.ranMs += ranMs
    }
    if (granted.isRecalled) giveBack(granted, 1)
  }

  /** Finds or opens an engine of which control gives a slot: so it can be reached. */
  function reached(engine: GrantedEngine, model: Model): Granted {
    const granted = byId.get(engine.engineId) ?? open(engine, model)
    byId.set(engine.engineId, granted)
    granted.connections.resume()
    return granted
  }

  /** Without this an engine that is silent here, and sends to others, would count as stuck. */
  function tellProgress(granted: Granted, now: number): void {
    const { lastProgressAt, options } = granted.connections
    if (lastProgressAt <= granted.toldAt || now - granted.toldAt < Math.min(1_000, options.noProgressMs / 4)) return
    granted.toldAt = now
    progressed(granted.engineId, now - lastProgressAt)
  }

  function recall(granted: Granted): void {
    granted.isRecalled = true
    giveBack(granted, granted.free)
  }
  const leaseOptions = { onReleased, probe: false, waitedMs: 0, loadedMs: 0 }

  return {
    granted(engine: GrantedEngine, slots: number): void {
      const model = find(engine.modelId)
      if (!model) return returned(engine.engineId, slots, null)
      const granted = reached(engine, model)
      byModel.set(engine.modelId, granted)
      granted.isRecalled = granted.wasEmpty = false
      granted.free += slots
      granted.spare = 0
      granted.lookedAt = performance.now()
    },

    /** A call gets this slot, which control has taken for it. `keeps`: other calls may use it afterwards. */
    lent(engine: GrantedEngine, keeps: boolean, waited: Pick<Lease, 'waitedMs' | 'loadedMs'>): Lease | undefined {
      const model = find(engine.modelId)
      if (!model) {
        returned(engine.engineId, 1, null)
        return undefined
      }
      const granted = reached(engine, model)
      if (keeps) byModel.set(engine.modelId, granted)
      granted.isRecalled = !keeps
      granted.wasEmpty = false
      granted.used++
      if (!keeps) giveBack(granted, granted.free)
      return new EngineLease<Granted>(granted, granted.connections, energy, { ...leaseOptions, ...waited })
    },

    /** Takes a slot that is free here; undefined if there is none. On the hot path. */
    take(this: void, modelId: string): Lease | undefined {
      const granted = byModel.get(modelId)
      if (!granted || granted.free === 0 || granted.isRecalled) {
        lacking(modelId)
        return undefined
      }
      granted.free--
      granted.used++
      if (granted.free < granted.spare) granted.spare = granted.free
      return new EngineLease<Granted>(granted, granted.connections, energy, leaseOptions)
    },

    /** Control needs the slots: the free ones go back now, the others when their requests have ended. */
    recall(engineId: string): void {
      const granted = byId.get(engineId)
      if (granted) recall(granted)
    },

    /** The engine cannot be reached: its requests fail, and its slots go back. */
    unreachable(engineId: string, failure: () => Failure): void {
      const granted = byId.get(engineId)
      if (!granted) return
      // Before the requests fail, so that the slots they release are given to no other request.
      recall(granted)
      granted.connections.interrupt(failure)
    },

    /** The engine has ended: its requests fail, and its slots are void. `slotsInUse`: see `EngineConnections.fail`. */
    ended(engineId: string, failure: () => Failure, slotsInUse?: number): void {
      const granted = byId.get(engineId)
      if (!granted) return
      granted.connections.fail(failure, slotsInUse)
      forget(granted)
    },

    /** Gives back what nobody has used for a while, and tells of which engines something came. Call it often. */
    look(): void {
      const now = performance.now()
      for (const granted of byId.values()) {
        tellProgress(granted, now)
        if (now - granted.lookedAt < idleMs) continue
        giveBack(granted, Math.min(granted.spare, granted.free))
        granted.spare = granted.free
        granted.lookedAt = now
        // Not at once: slots that come one at a time would each need a new connection.
        const isEmpty = granted.free + granted.used === 0
        if (isEmpty && granted.wasEmpty) forget(granted)
        granted.wasEmpty = isEmpty
      }
    },
  }
}
export type GrantedEngines = ReturnType<typeof openGrantedEngines>
