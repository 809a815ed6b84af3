import { hostEnvironment } from '../core/config.ts'
import { Failure } from '../core/failure.ts'
import { newId } from '../core/ids.ts'
import { pendingText } from '../core/jobs/job-progress.ts'
import type { Fleet, ModelActivity, SlotQueue } from '../core/models/fleet.ts'
import type { Model } from '../core/models/model.ts'
import type { ModelPlan } from '../core/models/model-plan.ts'
import { openAffinity } from './affinity/affinity.ts'
import { applyConfiguration } from './apply-configuration.ts'
import { openBenchmarks } from './benchmarks.ts'
import { systemClock } from './clock.ts'
import { openDeviceProcesses } from './device-processes.ts'
import { openEngineEffects } from './engine-effects.ts'
import { engineOutcomes } from './engine-outcomes.ts'
import { openFleetLaunches } from './fleet-launches.ts'
import { type FleetOptions, parkingBudgetOf, residencyRules } from './fleet-options.ts'
import { type FleetPauses, openFleetPauses } from './fleet-pauses.ts'
import { openFleetPools } from './fleet-pools.ts'
import { copySaved, copyState, countSlots, noActivity, nothingWaits, unservedModels } from './fleet-snapshot.ts'
import { followCards } from './follow-cards.ts'
import { enginePath } from './launcher/environment.ts'
import { openLoadTimes } from './load-times.ts'
import { openMeasuredMemory } from './measured-memory.ts'
import { openModelSchedules } from './model-schedules.ts'
import { openNeededPrograms } from './needed-programs.ts'
import { openCardBackends } from './placement/card-backend.ts'
import { openForeignGrowth } from './placement/foreign-growth.ts'
import { openMemory } from './placement/memory.ts'
import { openModelPlacement, slotsFor } from './placement/model-placement.ts'
import { ownCards } from './placement/own-cards.ts'
import { pauseAdvice } from './placement/pause-advice.ts'
import { placementsBy, threadsBy } from './placement/placement-facts.ts'
import { openRefusedFiles } from './placement/refused-files.ts'
import { plannedFeatures } from './plan-features.ts'
import { openPoolLauncher } from './pool-launchers.ts'
import { traitsOf } from './presets/presets.ts'
import { probeMachine } from './probe-machine.ts'
import { EngineLease } from './requests/lease.ts'
import { progressFollower } from './requests/progress.ts'
import { modelsClosed, type Resident } from './residency/model-state.ts'
import { openResidency, type Residency } from './residency/residency.ts'
import { sandboxWarning } from './sandbox/level.ts'
import { disabledState, openModelSizing } from './size-model.ts'
import { openUpcoming } from './size-upcoming.ts'
import { openSlotGrants } from './slot-grants.ts'
import { slotMover } from './slot-mover.ts'
import { openSlotsElsewhere } from './slots-elsewhere.ts'
import { openTakeOver } from './take-over.ts'

/**
 * Opens the fleet: ends processes that earlier runs left, finds the devices, starts loading the models that are kept
 * loaded, and leases slots of engines. Resolves before any model is loaded.
 */
export async function openFleet(options: FleetOptions): Promise<Fleet> {
  const { log, limits, clock = systemClock, environment = hostEnvironment() } = options
  const { wrapper, sandbox, devices: machine } = options.machine ?? (await probeMachine(options.dataDir, environment))
  const schedules = openModelSchedules({
    models: options.models,
    clock,
    log,
    changed: () => void applyModels(),
    load: ({ id }) => loadNow(id),
    unload: id => residency.unload(id),
  })
  const { models } = schedules
  const rules = { environment, devices: options.ownDevices }
  const source = { ...machine, cards: async () => ownCards(await machine.cards(), rules) }
  const host = { host: environment, wrapper, support: sandbox, secrets: options.secrets ?? [] }
  const pathWith = (more?: readonly string[]) => enginePath(options.dataDir, environment.PATH ?? '', more)
  const settings = { pools: options.pools?.() ?? {}, openPoolLauncher: options.openPoolLauncher ?? openPoolLauncher }
  const [{ outputs, launches, launchesIn, upstreams, ...launched }, programs] = await Promise.all([
    openFleetLaunches({ ...options, ...host, ...settings, devices: source.cards }),
    openNeededPrograms(models(), pathWith, clock.now),
  ])
  const folderFor = async (model: Model) => await options.caches?.folderFor(model)
  const elsewhere = openSlotsElsewhere(options.usedElsewhere, () => ({ ...residency, release: onReleased }))
  const left = await openTakeOver({ ...options, models, launches, environment, clock, folderFor, elsewhere })
  // `residency`, `engines` and `memory` need each other, so two of them get functions that are called later.
  let opened: Residency | undefined
  let closing: Promise<void> | undefined
  let pauses: FleetPauses | undefined
  const measured = openMeasuredMemory(options)
  const foreignGrowth = openForeignGrowth()
  const booked = () => [...left.booked(), ...(opened?.residents() ?? [])]
  const memory = await openMemory({
    source,
    log,
    swept: launched.hasSwept || left.hasEnded,
    residents: booked,
    processes: () => deviceProcesses(0),
    measured(resident, shares) {
      const bytes = shares.reduce((sum, share) => sum + share, 0)
      measured.reportDrift(resident, bytes)
      measured.remember(resident, bytes)
      opened?.measured(resident.engineId, shares)
    },
    failed: (id, { reason, isFatal }) => opened?.deviceFailed(id, reason, isFatal),
    changed: () => {
      pauses?.refresh()
      opened?.makeRoom(foreignGrowth(memory.devices(), memory.capacities()))
    },
  })
  foreignGrowth(memory.devices(), memory.capacities())
  const loadTimes = openLoadTimes(options)
  const backends = openCardBackends({ ...options, environment, wrapper, memory })
  const refused = openRefusedFiles()
  const pools = await openFleetPools({
    ...options,
    opened: launched.pools,
    settings: settings.pools,
    local: openModelPlacement(memory, backends, sandbox, refused, models),
    sandbox,
    refused,
    models,
    residents: booked,
    waits: resident => engines.pendingOf([resident]) !== null,
    clock,
    asked: () => void (opened && !closing && left.again()),
    changed: how => void poolsChanged(how),
  })
  const { placements } = pools
  const placementOf = placementsBy(memory, backends)
  const threadsOf = threadsBy(memory, () => opened?.residents() ?? [])
  const parkingBudget = parkingBudgetOf(limits, machine.cpu.totalBytes)
  const engines = openEngineEffects({
    dataDir: options.dataDir,
    launchesIn,
    upstreams,
    memory,
    pools,
    environment,
    configured: modelId => models().find(({ id, enabled }) => id === modelId && enabled),
    refused,
    backendOf: backends.found,
    placementOf,
    threadsOf,
    cancelGraceMs: limits.cancel_grace,
    parkingBudget,
    keptByParked: model => loadTimes.parking(model)?.cardBytes,
    caches: options.caches,
    begun: resident => elsewhere.begun(resident),
    clock,
    log,
    events: () => opened!,
  })
  for (const text of [wrapper.name === 'plain' && wrapper.promise, sandboxWarning(sandbox)]) if (text) log.warn(text)
  const benchmarks = openBenchmarks(options)
  const affinity = openAffinity()
  const move = slotMover(affinity, () => residency, engines.connections)
  let cancelWake = () => {}
  let queue: SlotQueue | undefined
  const capacities = () => pools.capacities(pauses?.marked(memory.capacities()) ?? memory.capacities())
  const residency = openResidency(
    {
      ...engines.effects,
      now: clock.now,
      parkingBudget: () => parkingBudget,
      wake(at) {
        cancelWake()
        cancelWake = clock.after(Math.max(0, at - clock.now()), () => residency.tick())
      },
      newEngineId: () => newId('wkr'),
      mayLoadAhead: () => sizing.size === 0,
      ...engineOutcomes({
        ...options,
        memory,
        measured,
        loadTimes,
        residency: () => residency,
        resize: modelId => void stateOf(modelId).catch(() => {}),
      }),
    },
    capacities,
    {
      waits: modelId => queue?.waits(modelId) ?? false,
      // Whoever waits for a model whose files are being read is not judged by what was read before.
      demand: modelId => (sizing.has(modelId) ? undefined : queue?.demand(modelId)),
      get reference() {
        return queue?.reference ?? nothingWaits
      },
      serve: modelId => queue?.serve(modelId),
      refuse: (...refusal) => queue?.refuse(...refusal),
    },
    residencyRules(limits),
  )
  opened = residency
  const { release, share: onShared, find, residents } = residency
  const grants = openSlotGrants({
    residency: { ...residency, release: (...released) => onReleased(...released) },
    connections: engines.connections,
    waits: id => queue?.waits(id) ?? false,
  })
  const deviceProcesses = openDeviceProcesses(source, memory.devices, residents, engines.pid)
  const paused = (pauses = await openFleetPauses({
    ...options,
    clock,
    memory,
    residents,
    engines,
    deviceProcesses,
    changed(how) {
      residency.pausesChanged(how)
      for (const modelId of residency.known()) demandChanged(modelId)
    },
  }))
  let notifyIdle: (() => void) | undefined
  const sized = { models, clock, measured, placements, memory, loadTimes, log }
  const stateOf = openModelSizing({ ...sized, residency: () => residency })
  async function poolsChanged(how?: { drains: boolean }): Promise<void> {
    if (!opened || closing) return
    if (how?.drains) opened.pausesChanged({ atOnce: false })
    await Promise.allSettled(pools.toSize(opened.states(), how !== undefined).map(modelId => stateOf(modelId)))
    opened.refresh()
    for (const modelId of opened.known()) demandChanged(modelId)
  }

  const upcoming = openUpcoming(() => residency, stateOf)
  const applyModels = () =>
    applyConfiguration(models(), {
      residency,
      keep: ids => affinity.keep(ids),
      isUnfit: model => placements.isUnfit(model),
      update: ({ id }) =>
        stateOf(id).catch((thrown: unknown) => {
          if (!closing) log.warn('A model cannot be offered', { model: id }, thrown)
        }),
    })

  const onReleased = (...released: Parameters<Residency['release']>): void => {
    release(...released)
    if (released[0].serves.retired) elsewhere.released(released[0])
    engines.used(released[0])
    if (notifyIdle && !busy()) notifyIdle()
  }
  const busy = () => residents().some(resident => resident.leases > 0)

  const take: Fleet['take'] = (modelId, waitedMs = 0, alone, prompt) => {
    const near = prompt === undefined ? undefined : affinity.choose(find(modelId)?.residents ?? [], prompt)
    const resident = closing ? undefined : residency.take(modelId, alone, near?.engineId)
    if (!resident) return undefined
    near?.given(resident.engineId)
    const loadedMs = waitedMs > 0 ? residency.loadedMs(resident, waitedMs) : 0
    const followProgress = progressFollower(outputs, resident)
    const options = { onReleased, onShared, probe: resident.pause !== null, waitedMs, loadedMs, followProgress, move }
    return new EngineLease(resident, engines.connections(resident.engineId), memory.energy, options)
  }

  /** Models whose memory and backend are being determined, which may take minutes the first time. */
  const sizing = new Set<string>()
  async function sizeAndLoad(modelId: string): Promise<void> {
    if (sizing.has(modelId)) return
    sizing.add(modelId)
    try {
      const state = await stateOf(modelId)
      sizing.delete(modelId)
      if (queue?.waits(modelId)) residency.demandChanged(state)
      // The requests were aborted meanwhile: start one load anyway, so that the model is ready for the next ones.
      else residency.load(state, { loaded() {}, refuse() {} })()
    } catch (thrown) {
      sizing.delete(modelId)
      queue?.refuse(modelId, () => Failure.from(thrown), Number.POSITIVE_INFINITY)
    }
  }

  function demandChanged(modelId: string): void {
    if (closing) return queue?.refuse(modelId, modelsClosed, Number.POSITIVE_INFINITY)
    const state = find(modelId)
    const waits = queue?.waits(modelId) ?? false
    if (waits) grants.waited(modelId)
    // Without an engine its memory is estimated again: files and configuration may have changed.
    if (waits && (state?.residents.length ?? 0) === 0) void sizeAndLoad(modelId)
    else if (state) residency.demandChanged(state)
  }

  function activity(model: Model): ModelActivity {
    const state = find(model.id)
    const initial: ModelActivity = { ...noActivity, status: model.enabled ? 'cold' : 'disabled' }
    const known = state ? residency.activity({ ...state, model }) : initial
    const missing = model.enabled ? programs.missingForAll(model) : null
    if (missing !== null) return { ...known, status: 'unavailable', reason: missing }
    // It is loaded as soon as its memory is estimated.
    if (sizing.has(model.id) && known.status === 'cold') return { ...known, status: 'loading' }
    const pending = known.status === 'loading' ? engines.pendingOf(state?.residents ?? []) : null
    return pending === null ? known : { ...known, pending }
  }

  async function plan(model: Model): Promise<ModelPlan> {
    const refusal = model.enabled ? programs.missingForAll(model) : `The model '${model.id}' is disabled here.`
    const state = model.enabled ? await stateOf(model.id) : await disabledState(model, placements)
    const { layout, ...planned } = residency.plan(state, refusal)
    const live = state.residents.find(resident => resident.state !== 'stopping')
    const needed = planned.devices.filter(({ neededBytes }) => neededBytes > 0).map(({ id }) => id)
    const isNowhere = planned.status === 'refused' || (needed.length === 0 && state.placement.kind !== 'none')
    const placement = live ? engines.placement(live) : isNowhere ? null : placementOf(model, layout, needed)
    const pending = planned.status === 'loading' ? engines.pendingOf(state.residents) : null
    return {
      ...planned,
      ...(pending !== null && { detail: pendingText(`'${model.id}'`, pending), etaMs: null }),
      advice: await pauseAdvice(planned.devices, ids => placements.layoutOn(model, ids)),
      placement,
      threads: (live ? engines.threads(live.engineId) : threadsOf(model, needed)) ?? null,
      parking: await engines.plannedParking(state, layout.placement.pool ? [] : needed, planned.figures.bytes),
      leftDevices: memory.left(),
      schedule: schedules.of(model),
      benchmark: benchmarks.of(model),
      ...(await plannedFeatures(model, state, options.caches)),
    }
  }

  const loads = new Map<string, Promise<void>>()
  async function loadNow(modelId: string): Promise<void> {
    const state = await stateOf(modelId)
    await new Promise<void>((resolve, refuse) => void residency.load(state, { loaded: () => resolve(), refuse }))
  }
  let hasLeft = false
  async function close(deadlineMs: number): Promise<void> {
    residency.close()
    if (busy() && deadlineMs > 0)
      await new Promise<void>(done => {
        notifyIdle = done
        clock.after(deadlineMs, done)
      })
    engines.failAll(modelsClosed)
    const isLeft = ({ placement }: Resident) => hasLeft && launches.outlives(placement.pool)
    residency.stopAll('the server is shutting down', isLeft)
    await engines.allExited(residents(), isLeft)
    for (const stop of [cancelWake, stopFollowing]) stop()
    for (const owner of [paused, schedules, memory, pools]) owner.close()
    await launched.close()
  }

  // Not awaited: the files of their models are read.
  const known = (modelId: string) => void stateOf(modelId).catch(() => {})
  await left.begin({ memory, capacities, residency, engines, known })
  pools.begin()
  const stopFollowing = followCards({ ...options, environment, clock, memory, backends, residency, stateOf })
  // Not awaited: trying the backends of a model may take minutes, and the server must answer meanwhile.
  void applyModels()
  schedules.reconfigured()

  return {
    traits: traitsOf,
    missing: programs.missing,
    async reconfigured() {
      pools.reconfigured(options.pools?.() ?? {})
      schedules.reconfigured()
      await Promise.all([applyModels(), paused.reconfigured()])
    },
    take,
    demandChanged,
    connect: connected => void (queue = connected),
    activity(modelId) {
      const model = models().find(({ id }) => id === modelId)
      return model ? activity(model) : { ...noActivity }
    },
    slots(modelId) {
      const model = models().find(({ id }) => id === modelId)
      return model ? countSlots(model, find(modelId)?.slots ?? slotsFor(model), residents()) : { ready: 0, planned: 0 }
    },
    plan,
    load({ id }) {
      if (closing) return Promise.reject(modelsClosed())
      const load = loads.get(id) ?? loadNow(id).finally(() => loads.delete(id))
      loads.set(id, load)
      return load
    },
    upcoming: next => (closing ? undefined : upcoming(next)),
    pauses: paused,
    async unload(modelId) {
      const evicted = residents().filter(resident => resident.serves.model.id === modelId)
      residency.unload(modelId)
      await Promise.all(evicted.map(resident => engines.exited(resident.engineId)))
      await memory.released(evicted.flatMap(({ devices }) => devices))
    },
    loads: engines.loads,
    benchmark: benchmarks.of,
    keepBenchmark: (model, runs) => benchmarks.keep(model, runs, residents(), engines),
    snapshot: () => ({
      ...copyState(residents(), { memory, pools, engines, pauses: paused, clock, runsNext: residency.runsNext }),
      models: Object.fromEntries(models().map(model => [model.id, activity(model)])),
      saved: copySaved(models(), options.caches),
    }),
    deviceProcesses,
    output: outputs,
    unserved: () => unservedModels(models(), queue, find),
    async leave() {
      residency.settle()
      for (const stop of [cancelWake, stopFollowing]) stop()
      await launches.leave()
      hasLeft = true
    },
    grants,
    ...elsewhere.ofFleet,
    close(deadlineMs) {
      // A second call without a deadline also ends the wait of the first call.
      if (deadlineMs <= 0) notifyIdle?.()
      return (closing ??= close(deadlineMs))
    },
  }
}
