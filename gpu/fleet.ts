import type { Limits } from '../core/config.ts'
import { hostEnvironment } from '../core/config.ts'
import type { Failure } from '../core/failure.ts'
import type { Fleet, FleetSnapshot, Lease, LeaseWish } from '../core/fleet.ts'
import { newId } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
import { sameEngine } from '../core/models/change.ts'
import type { Model } from '../core/models/model.ts'
import { openCardBackends, unknownYet } from './card-backend.ts'
import { type Clock, systemClock } from './clock.ts'
import { defaultRules } from './effects.ts'
import { estimate } from './estimate.ts'
import { openLocalLauncher } from './launcher/local.ts'
import { EngineLease } from './lease.ts'
import { type Line, notOffered, type Resident, shuttingDown } from './line.ts'
import { lookAtMachine, type Machine } from './machine.ts'
import { openMemory } from './memory.ts'
import { patiently } from './patience.ts'
import { presetOf, traitsOf } from './presets/presets.ts'
import { openResidency, type Residency } from './residency.ts'
import { ofUnknownSize, roomFor, whereFor } from './room.ts'
import { openRunning } from './running.ts'

export interface FleetOptions {
  /** The models as they are configured now; asked again whenever it matters. */
  models: () => readonly Model[]
  dataDir: string
  /** Of this run of the server; processes of other runs in the same directory are ended. */
  bootId: string
  log: Log
  limits: Pick<Limits, 'engine_backoff' | 'engine_turn' | 'cancel_grace'>
  /** Hears how long each engine took until it was ready. */
  onLoaded?: (modelId: string, ms: number) => void
  clock?: Clock
  /** What an engine's environment is built from; this process's own where not given. */
  environment?: Readonly<Record<string, string | undefined>>
  /** Found out where not given. */
  machine?: Machine
}

/**
 * Opens the GPU side: ends what earlier runs left, finds the devices, starts loading what is kept loaded, and hands
 * out slots of engines. Resolves before anything is loaded.
 */
export async function openFleet(options: FleetOptions): Promise<Fleet> {
  const { models, log, limits, clock = systemClock, environment = hostEnvironment() } = options
  const { wrapper, devices: source } = options.machine ?? (await lookAtMachine(environment))
  const launcher = await openLocalLauncher({ ...options, host: environment, wrapper })
  // The three below need each other: the residency decides, the engines do, the memory knows what there is.
  let opened: Residency | undefined
  const memory = await openMemory({
    source,
    log,
    swept: launcher.swept.ended > 0,
    residents: () => opened?.residents() ?? [],
    changed: () => opened?.refresh(),
  })
  const backends = openCardBackends({ ...options, environment, wrapper, memory })
  const engines = openRunning({
    launcher,
    memory,
    environment,
    backendOf: backends.known,
    cancelGraceMs: limits.cancel_grace,
    log,
    events: () => opened!,
  })
  if (wrapper.name === 'plain') log.warn(wrapper.promise)
  let cancelWake = () => {}
  const residency = openResidency(
    {
      ...engines.effects,
      now: clock.now,
      wake(at) {
        cancelWake()
        cancelWake = clock.after(Math.max(0, at - clock.now()), () => residency.tick())
      },
      newEngineId: () => newId('wkr'),
      loaded: options.onLoaded,
    },
    () => memory.places(),
    {
      ...defaultRules,
      backoff: { ...defaultRules.backoff, firstMs: limits.engine_backoff },
      holdMs: limits.engine_turn,
    },
  )
  opened = residency
  const { take, request, release, find, residents, activity } = residency
  let closing: Promise<void> | undefined
  let idle: (() => void) | undefined

  /**
   * The line of a model with what it needs now; its size is looked up only while it may have to be placed. Throws
   * Failure `model_not_found` when it is not offered any more.
   */
  async function lineOf(modelId: string): Promise<Line> {
    const configured = () => {
      const model = models().find(one => one.id === modelId)
      if (!model?.enabled) throw notOffered(modelId)
      return model
    }
    for (let model = configured(); ; model = configured()) {
      const preset = presetOf(model)
      const slots = model.concurrency ?? preset.slots
      const known = find(modelId)
      const runsOn = preset.needsBackend && !(await backends.of(model)) ? 'cpu' : preset.runsOn
      const wanted: Line['wanted'] = { modelId, bytes: 0, ...whereFor(model, runsOn, memory.devices()) }
      if (known && known.residents.length > 0 && sameEngine(known.model, model)) wanted.bytes = known.wanted.bytes
      else {
        const room = roomFor(wanted, slots, memory.places())
        const sized = { ...model, memory: model.memory ?? preset.memory }
        wanted.bytes = room ? ((await estimate(sized, room)) ?? ofUnknownSize(wanted, memory.places())) : 0
      }
      // The files took a moment to look at, in which the configuration may have changed again.
      if (configured() === model) return residency.line(model, wanted, slots)
    }
  }

  /** Lines for what is kept loaded or was changed; none for what is not offered any more. */
  async function adopt(): Promise<void> {
    const offered = new Map(models().flatMap(model => (model.enabled ? [[model.id, model]] : [])))
    for (const id of residency.known()) if (!offered.has(id)) residency.drop(id)
    for (const model of offered.values()) {
      const known = find(model.id)
      if (known ? known.model !== model : model.replicas.min > 0)
        await lineOf(model.id).catch((thrown: unknown) => {
          if (!closing) log.warn('A model cannot be offered', { model: model.id }, thrown)
        })
    }
    residency.tick()
    residency.refresh()
  }

  const returned = (resident: Resident, ranMs: number | null): void => {
    release(resident, ranMs)
    if (idle && !busy()) idle()
  }
  const busy = () => residents().some(resident => resident.leases > 0)
  const leaseOf = (resident: Resident, waitedMs: number, loadedMs: number): Lease =>
    new EngineLease(resident, engines.link(resident.engineId), returned, waitedMs, loadedMs)

  /** Trying the backends of a card may take minutes the first time, longer than anybody has to wait. */
  async function lineInTime(model: Model, { waitMs, signal }: LeaseWish): Promise<Line> {
    const work = lineOf(model.id)
    try {
      return await patiently(work, {
        ms: Math.max(waitMs, shortestLookMs),
        signal,
        clock,
        late: () => unknownYet(model.id),
      })
    } catch (thrown) {
      // It was asked for all the same, and is loaded for those who ask next.
      work.then(line => request(line, { slot: false, waitMs: 0, grant: () => {}, refuse: () => {} })).catch(() => {})
      throw thrown
    }
  }

  async function queue(model: Model, want: LeaseWish): Promise<Lease> {
    const askedAt = clock.now()
    const line = await lineInTime(model, want)
    const { signal } = want
    signal?.throwIfAborted()
    return new Promise((resolve, reject) => {
      const leave = () => {
        cancel()
        reject(signal!.reason)
      }
      const settled = () => signal?.removeEventListener('abort', leave)
      signal?.addEventListener('abort', leave, { once: true })
      const cancel = request(line, {
        slot: true,
        background: want.background === true,
        waitMs: Math.max(0, want.waitMs - (clock.now() - askedAt)),
        grant(resident, _waitedMs, loadedMs) {
          settled()
          resolve(leaseOf(resident, clock.now() - askedAt, loadedMs))
        },
        refuse(failure: Failure) {
          settled()
          reject(failure)
        },
      })
    })
  }

  const loads = new Map<string, Promise<void>>()
  async function loadNow(modelId: string): Promise<void> {
    const line = await lineOf(modelId)
    await new Promise<void>((resolve, reject) => {
      request(line, { slot: false, waitMs: Number.POSITIVE_INFINITY, grant: () => resolve(), refuse: reject })
    })
  }

  async function close(deadlineMs: number): Promise<void> {
    residency.close()
    if (busy() && deadlineMs > 0)
      await new Promise<void>(done => {
        idle = done
        clock.after(deadlineMs, done)
      })
    engines.end(shuttingDown)
    residency.stopAll('the server is shutting down')
    await engines.allGone()
    cancelWake()
    memory.close()
    launcher.close()
  }

  // Not waited for: what a model can run on may have to be tried first, and the server answers meanwhile.
  void adopt()

  function spare(modelId: string): Lease | undefined {
    const resident = closing ? undefined : take(modelId)
    return resident && leaseOf(resident, 0, 0)
  }

  return {
    traits: traitsOf,
    reconfigured: adopt,
    lease(model, want) {
      if (closing) return Promise.reject(shuttingDown())
      if (want.signal?.aborted) return Promise.reject(want.signal.reason)
      const free = spare(model.id)
      return free ? Promise.resolve(free) : queue(model, want)
    },
    spare,
    load({ id }) {
      if (closing) return Promise.reject(shuttingDown())
      // Whoever asks again, to see how far it is, waits for the same.
      const load = loads.get(id) ?? loadNow(id).finally(() => loads.delete(id))
      loads.set(id, load)
      return load
    },
    async unload(modelId) {
      const leaving = residents().filter(resident => resident.line.model.id === modelId)
      residency.unload(modelId)
      await Promise.all(leaving.map(resident => engines.parted(resident.engineId)))
    },
    snapshot(): FleetSnapshot {
      const epoch = (at: number) => Math.round(clock.epoch() - (clock.now() - at))
      return {
        devices: memory.snapshot(),
        residents: residents().map(resident => ({
          engineId: resident.engineId,
          modelId: resident.line.model.id,
          state: resident.state,
          pid: engines.pid(resident.engineId),
          command: engines.command(resident.engineId),
          devices: [...resident.devices],
          bytes: resident.bytes,
          slots: resident.slots,
          leases: resident.leases,
          startedAt: epoch(resident.startedAt),
          lastUsedAt: epoch(resident.lastUsedAt),
        })),
        models: Object.fromEntries(
          models().map(model => {
            const line = find(model.id)
            return [model.id, line ? activity({ ...line, model }) : untouched(model)]
          }),
        ),
      }
    },
    output: launcher.outputs,
    close(deadlineMs) {
      // Who asks a second time and has no more patience does not wait out the first one's.
      if (deadlineMs <= 0) idle?.()
      return (closing ??= close(deadlineMs))
    },
  }
}

/** How long a look at a model's files may take, however little patience there is. */
const shortestLookMs = 1_000

const untouched = (model: Model): FleetSnapshot['models'][string] => ({
  status: model.enabled ? 'cold' : 'disabled',
  waiting: 0,
  reason: null,
  etaMs: null,
  engineStarts: 0,
  engineFailures: 0,
})
