import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../core/failure.ts'
import { enabledAdapters } from '../core/models/adapter.ts'
import type { EngineAddress } from '../core/models/engine-address.ts'
import type { EnginePlacement } from '../core/models/engine-placement.ts'
import type { Model } from '../core/models/model.ts'
import type { ProcessorThreads } from '../core/models/model-plan.ts'
import { nodesOf } from '../core/models/spanned-nodes.ts'
import { saysOutOfMemory, withoutLocations } from '../core/tasks/protocols/engine-text.ts'
import { openEngineSaves } from './caches/engine-saves.ts'
import { type Clock, fromEpoch } from './clock.ts'
import { type ConnectionFacts, connectionOptionsOf, converterFor } from './connection-options.ts'
import { type Engine, openEngine } from './engine.ts'
import { engineEnded, givenAway, notReached } from './engine-failures.ts'
import { type EngineStart, engineOptionsOf, launchFactsOf, startHash } from './engine-options.ts'
import { openEngineParking } from './engine-parking.ts'
import type { FleetPools } from './fleet-pools.ts'
import type { ProcessExit } from './launcher/launcher.ts'
import type { Launched, Launches } from './launcher/launches.ts'
import { type EngineRun, type LeftEngine, noteOf, type RefusalNote } from './left-engines.ts'
import { openLoadHistory } from './load-history.ts'
import { elsewhere } from './placement/engine-placement.ts'
import type { Memory } from './placement/memory.ts'
import { type ParkingChoice, parkingText } from './placement/parking-choice.ts'
import type { placementsBy } from './placement/placement-facts.ts'
import type { openRefusedFiles } from './placement/refused-files.ts'
import { loadRefusal } from './presets/load-refusal.ts'
import type { Backend } from './presets/preset.ts'
import { presetOf } from './presets/presets.ts'
import { missingSandboxPaths } from './presets/sandbox-requirements.ts'
import type { EngineConnections } from './requests/connections.ts'
import type { ModelState, Resident } from './residency/model-state.ts'
import { devicePaused, type Residency } from './residency/residency.ts'
import type { Effects } from './residency/residents.ts'
import { removeOwn, savesConversations, writtenFolder } from './saved-conversations.ts'
import { unpackEngineFiles } from './unpack-engine-files.ts'

interface Running extends EngineRun {
  engine: Engine
  start: EngineStart
  /** `startHash` of its start; empty until it is ready. */
  hash: string
  connections: EngineConnections | undefined
}

export interface EngineEffectOptions extends ConnectionFacts {
  dataDir: string
  /** Follows the engines of a pool, undefined for this machine. Throws Failure `worker_error` where that is not possible. */
  launchesIn: (pool: string | undefined) => Launches
  /** The same of engines that run elsewhere and are only called. */
  upstreams: Launches
  memory: Memory
  pools: Pick<FleetPools, 'memoryOf' | 'needsOf' | 'backendOf' | 'ended'>
  environment: Readonly<Record<string, string | undefined>>
  /** Keeps which files an engine has refused for good. */
  refused: Pick<ReturnType<typeof openRefusedFiles>, 'add'>
  /** The backend by which the built-in engine uses the cards for a model; null on the processor. */
  backendOf: (model: Model) => Backend | null
  /** Where an engine of the model runs in its layout on these devices. */
  placementOf: ReturnType<typeof placementsBy>
  /** The threads of an engine of the model on these devices; null if it chooses them itself. */
  threadsOf: (model: Model, devices: readonly string[], engineId?: string) => ProcessorThreads | null
  /** Bytes of the main memory that parked engines may use together. */
  parkingBudget: number
  /** Bytes that a parked engine of the model keeps of each card, if that was measured. */
  keptByParked: (model: Model) => number | undefined
  /** Called when an engine is started or taken over, before it is ready. */
  begun: (resident: Resident) => void
  clock: Clock
  events: () => Residency
}

/** Implements the effects of the residency: starts and stops the engines, and keeps the connections to ready ones. */
export function openEngineEffects(options: EngineEffectOptions) {
  const { launchesIn, upstreams, memory, pools, refused, log, events } = options
  const running = new Map<string, Running>()
  const parking = openEngineParking(options)
  const history = openLoadHistory()
  const saves = openEngineSaves({ save: async (...engine) => options.caches?.save(...engine) }, options.clock)
  /** Resolved when the engine has ended, by engine id. */
  const exits = new Map<string, PromiseWithResolvers<void>>()

  /** `isLost`: its machine may have failed, so that no request has ended it. */
  function handleExit(resident: Resident, reason: string, isLost = false): void {
    const { engineId } = resident
    const { connections, conversations, writes } = running.get(engineId) ?? {}
    running.delete(engineId)
    saves.ended(engineId)
    removeOwn(conversations, writes)
    history.ended(engineId, reason)
    memory.ended(resident)
    pools.ended(resident)
    // Before the requests fail, so that the slots they release are given to no other request.
    events().exited(engineId, reason, isLost)
    connections?.fail(() => engineEnded(resident, reason), isLost ? undefined : resident.leases)
    announceExit(engineId)
  }

  /** Its launcher says that a ready engine cannot be reached any more, or can be again. */
  function reachChanged(resident: Resident, isReached: boolean): void {
    const { engineId, serves } = resident
    const one = running.get(engineId)
    if (resident.state !== 'ready' || !one) return
    const fields = { model: serves.model.id, engine: engineId, node: one.engine.node() ?? '' }
    log.warn(isReached ? 'An engine can be reached again' : 'An engine cannot be reached', fields)
    if (isReached) {
      one.connections?.resume()
      return events().reached(engineId)
    }
    // Before the requests fail, so that the slots they release are given to no other request.
    events().unreachable(engineId)
    one.connections?.interrupt(() => notReached(resident))
  }

  function announceExit(engineId: string): void {
    exits.get(engineId)?.resolve()
    exits.delete(engineId)
  }

  function newEngine(resident: Resident, start: EngineStart, left?: Launched): Engine {
    const { engineId, serves } = resident
    const engineOptions = engineOptionsOf(serves.model, engineId, start, options.environment)
    const starts = engineOptions.addresses === undefined ? launchesIn(resident.placement.pool) : upstreams
    const exited = (reason: string, { lastError, isLost }: ProcessExit) => {
      const fields = { model: serves.model.id, engine: engineId, reason, output: lastError }
      log.warn('An engine has ended unexpectedly', fields)
      handleExit(resident, reason, isLost)
    }
    return openEngine(engineOptions, starts, exited, left)
  }

  /** Decides how an engine is started. */
  async function prepare(resident: Resident): Promise<EngineRun> {
    const { engineId, devices } = resident
    const { model } = resident.serves
    if (presetOf(model).sandbox?.isOwn) await unpackEngineFiles()
    for (const warning of await missingSandboxPaths(model)) log.warn(warning, { model: model.id, engine: engineId })
    const threads = options.threadsOf(model, devices, engineId)
    // Other machines do not have the folders of this one.
    const isHere = resident.placement.pool === undefined
    const conversations = isHere && savesConversations(model) ? await options.caches?.folderFor(model) : undefined
    const writes = conversations === undefined ? undefined : writtenFolder(resident, conversations)
    const chosen = isHere && presetOf(model).parking ? await parking.choose(model, resident) : noParking
    return { placement: options.placementOf(model, resident, devices), threads, conversations, writes, parking: chosen }
  }

  function newStart(resident: Resident, run: EngineRun): EngineStart {
    const own = pools.memoryOf(resident, memory)
    const needs = pools.needsOf(resident)
    return {
      launchKey: randomBytes(32).toString('base64url'),
      facts: launchFactsOf(resident, run, {
        backendOf: pools.backendOf(resident, options.backendOf),
        memory: own,
        needs,
      }),
      visible: own.visibleTo(resident),
      ...(needs && { needs }),
    }
  }

  /** Notes a ready engine for the next server. */
  function noteReady(resident: Resident): void {
    const one = running.get(resident.engineId)
    // One that ends after its requests is no engine for the next server: what it has noted of it was true.
    if (!one || resident.state !== 'ready' || resident.draining === 'unload') return
    const { engine, start: begun, hash, connections: _connections, ...run } = one
    const { model } = resident.serves
    const note =
      presetOf(model).adapters?.routes && enabledAdapters(model).length > 0
        ? { refusal: 'Nobody knows which adapters it has loaded.' }
        : noteOf(resident, begun, hash, run)
    launchesIn(resident.placement.pool).note(engine.launchId(), note)
  }

  function noteRefusal({ engineId, placement }: Resident, refusal: string): void {
    const engine = running.get(engineId)?.engine
    if (engine) launchesIn(placement.pool).note(engine.launchId(), { refusal } satisfies RefusalNote)
  }

  /** Starts the engine of a resident, or asks the one that an earlier server has left. */
  async function start(resident: Resident, left?: LeftEngine): Promise<void> {
    const { engineId, serves } = resident
    const fields = { model: serves.model.id, engine: engineId }
    const startedAt = performance.now()
    history.began(resident)
    try {
      const run = left?.note.running ?? (await prepare(resident))
      const { conversations, writes, parking: chosen } = run
      if (resident.state === 'stopping') throw new Error('It was stopped before it began.')
      const begun = left?.note.start ?? newStart(resident, run)
      const adopted = left?.adopt()
      if (left && !adopted) throw new Failure('worker_error', 'It has ended.')
      const engine = newEngine(resident, begun, adopted)
      const one: Running = { ...run, engine, start: begun, hash: '', connections: undefined }
      running.set(engineId, one)
      const { reason } = resident.placement.plan?.paged ?? {}
      if (reason !== undefined) log.info('The context is shorter than that of the model', { ...fields, reason })
      // The HTTP client for engines is a large module, so it is imported with the first engine.
      const [{ EngineConnections }, { savingEngineAt }, { openSavedSlots }] = await Promise.all([
        import('./requests/connections.ts'),
        import('./requests/save-conversations.ts'),
        import('./saved-slots.ts'),
        engine.ready(),
      ])
      if (running.get(engineId) !== one) return
      const convert = await converterFor(resident, engine)
      one.hash = left?.note.hash ?? (await startHash(serves.model, engine.options, options))
      if (running.get(engineId) !== one) return
      const at = { endpoint: engine.endpoint()!, headers: engine.options.headers }
      const slots =
        conversations !== undefined && writes !== undefined && writes !== conversations
          ? await openSavedSlots({
              ...at,
              resident,
              folder: conversations,
              exchange: writes,
              usesCards: memory.cardsOf(resident).length > 0,
              caches: options.caches!,
              log,
            })
          : undefined
      if (running.get(engineId) !== one) return
      one.connections = new EngineConnections({ ...connectionOptionsOf(resident, one, convert, options), slots })
      if (slots) saves.ready(engineId, slots.saving)
      else if (conversations !== undefined && writes === conversations)
        saves.ready(engineId, savingEngineAt(at.endpoint, at.headers))
      const queueMs = resident.placement.pool === undefined ? 0 : Math.round(engine.queueMs())
      const loadMs = Math.round(performance.now() - startedAt) - queueMs
      if (left)
        log.info(`Took over the engine of '${serves.model.id}' from an earlier server`, { ...fields, ms: loadMs })
      else log.info('Engine ready', { ...fields, load_ms: loadMs, ...(queueMs > 0 && { queue_ms: queueMs }) })
      history.ready(engineId, loadMs)
      events().ready(engineId, chosen.level === null ? null : chosen.memory, queueMs)
      engine.watchReach(isReached => reachChanged(resident, isReached))
      engine.watchEndsAt(at => events().endsAt(engineId, at === null ? null : fromEpoch(options.clock, at)))
      noteReady(resident)
      if (memory.cardsOf(resident).length > 0) void memory.measure()
    } catch (thrown) {
      const failure = thrown instanceof Failure && thrown.code === 'worker_error' ? thrown : undefined
      const reason = failure?.engineText ?? (thrown instanceof Error ? thrown.message : String(thrown))
      const { engine: failed } = running.get(engineId) ?? {}
      const lines = failed?.logs() ?? []
      const output = lines.slice(-10).join('\n')
      if (resident.state !== 'stopping')
        log.warn(`An engine could not be ${left ? 'taken over' : 'started'}`, { ...fields, reason, output })
      // Its unpacked files were changed and its sandbox cannot replace them, so the next start would fail too.
      if (presetOf(serves.model).sandbox?.isOwn && /EROFS/.test(reason))
        await unpackEngineFiles({ verify: true }).catch((cause: unknown) => log.warn('Unpacking failed', fields, cause))
      const { conversations, writes } = running.get(engineId) ?? {}
      removeOwn(conversations, writes)
      running.delete(engineId)
      // Its history is for the owner of the machine, and callers get the other text.
      history.failed(engineId, reason)
      const shown = failure?.message ?? withoutLocations(reason)
      if (saysOutOfMemory(reason)) await memory.foundFull(resident)
      memory.ended(resident)
      const refusal = resident.state === 'stopping' ? undefined : loadRefusal(lines)
      const fault = refusal && (await refused.add(serves.model, refusal))
      events().startFailed(engineId, shown, { fault, isLost: failed?.isLost() ?? false })
      announceExit(engineId)
    }
  }

  function begin(resident: Resident, left?: LeftEngine): void {
    options.begun(resident)
    void start(resident, left)
  }

  async function stop(resident: Resident, reason: string, kill: boolean): Promise<void> {
    const { engineId, serves } = resident
    const one = running.get(engineId)
    log.info('Stopping an engine', { model: serves.model.id, engine: engineId, reason })
    noteRefusal(resident, 'It was being stopped.')
    const failure = () => (reason === devicePaused ? givenAway(resident) : engineEnded(resident, reason))
    if (kill) one?.connections?.fail(failure, resident.leases)
    else await saves.finish(engineId, maxSaveMs)
    await one?.engine.stop(reason, kill ? 0 : undefined)
    handleExit(resident, reason)
  }

  /** Resolves when the engine has ended. The engine must be running or stopping. */
  function exited(engineId: string): Promise<void> {
    const exit = exits.get(engineId) ?? Promise.withResolvers<void>()
    exits.set(engineId, exit)
    return exit.promise
  }

  /** Where an engine runs: known when it is started, because backends may be added later. */
  function placement(resident: Resident): EnginePlacement {
    const { model } = resident.serves
    const placed = running.get(resident.engineId)?.placement ?? options.placementOf(model, resident, resident.devices)
    if (placed.on === 'elsewhere') return { ...placed, detail: elsewhere(addresses(resident.engineId)) }
    const node = running.get(resident.engineId)?.engine.node() ?? null
    if (node === null) return placed
    const machines = nodesOf(model) > 1 ? 'nodes' : 'machine'
    const reach = resident.unreachable === null ? '' : ', which cannot be reached now'
    return { ...placed, detail: `${placed.detail}, ${machines} ${node}${reach}` }
  }

  /** The addresses of an engine that runs elsewhere and is ready; empty for others. */
  function addresses(engineId: string): EngineAddress[] {
    const { connections } = running.get(engineId) ?? {}
    return !connections || connections.options.isOwnProcess ? [] : connections.addresses.copy()
  }

  /** What happens to an engine that makes room, in sentences; null before it starts, and if its kind cannot be parked. */
  function parkingOf({ engineId, serves }: Resident): string | null {
    const { parking: choice } = running.get(engineId) ?? {}
    return choice && presetOf(serves.model).parking ? parkingText(choice, serves) : null
  }

  return {
    effects: {
      start: resident => begin(resident),
      stop: (resident, reason, kill) => void stop(resident, reason, kill),
      park(resident) {
        noteRefusal(resident, 'It was parked.')
        void parking.send(resident, 'park', running.get(resident.engineId))
      },
      unpark: resident =>
        void parking.send(resident, 'wake', running.get(resident.engineId)).then(() => noteReady(resident)),
      measureAgain(resident) {
        const measuring = memory.measureAgain(resident)
        void measuring?.then(() => events().settled(resident.engineId))
        return measuring !== undefined
      },
      settle: resident => void memory.settle(resident).then(() => events().settled(resident.engineId)),
      answered(resident) {
        const { detail, advice } = placement(resident)
        const fields = { model: resident.serves.model.id, engine: resident.engineId, runs: detail }
        if (advice !== null) log.warn('First answer of an engine that uses no GPU', fields)
        else log.info('First answer of an engine', fields)
      },
    } satisfies Partial<Effects>,
    /** Asks an engine that an earlier server has left whether it works, and connects to it. */
    takeOver: begin,
    connections: (engineId: string): EngineConnections => running.get(engineId)!.connections!,
    pid: (engineId: string): number | null => running.get(engineId)?.engine.pid() ?? null,
    command: (engineId: string): readonly string[] => running.get(engineId)?.engine.options.argv ?? [],
    placement,
    addresses,
    /** The threads of an engine that runs; undefined before. */
    threads: (engineId: string) => running.get(engineId)?.threads,
    parking: parkingOf,
    /** The same of the engine of a model, or of one that would be started with these bytes; null without `devices` for it. */
    async plannedParking(state: ModelState, devices: readonly string[], bytes: number): Promise<string | null> {
      const known = state.residents.map(parkingOf).find(text => text !== null)
      if (known !== undefined || devices.length === 0 || !presetOf(state.model).parking) return known ?? null
      return parkingText(await parking.choose(state.model, { devices, bytes }), state)
    },
    exited,
    /** Why the first of these engines does not run yet that waits for a machine of its pool, as a sentence; null if none does. */
    pendingOf(residents: readonly Resident[]): string | null {
      for (const { engineId, placement, state } of residents) {
        if (placement.pool === undefined || state !== 'starting') continue
        const reason = running.get(engineId)?.engine.waits() ?? null
        if (reason !== null) return reason
      }
      return null
    },
    /** A request of the engine has ended. */
    used: (resident: Resident) => saves.used(resident.engineId, () => resident.leases === 0),
    /** The newest loads of a model, newest first. */
    loads: history.of,
    failAll(failure: () => Failure): void {
      for (const { connections } of running.values()) connections?.fail(failure)
    },
    /**
     * Resolves when all have ended but those for which `stays` holds. One of a pool, which may not answer, is waited for as long as
     * it may take to stop.
     */
    async allExited(residents: readonly Resident[], stays: (resident: Resident) => boolean): Promise<void> {
      const left = new Set(residents.filter(stays).map(({ engineId }) => engineId))
      const inPools = residents.filter(one => one.placement.pool !== undefined && !left.has(one.engineId))
      const those = new Set(inPools.map(({ engineId }) => engineId))
      const ended = async (isOne: (engineId: string) => boolean): Promise<void> => {
        const those = () => [...running.keys()].filter(id => !left.has(id) && isOne(id))
        for (let some = those(); some.length > 0; some = those()) await Promise.all(some.map(exited))
      }
      const longest = Math.max(0, ...inPools.map(({ serves }) => serves.model.stop_grace))
      const late = pause(longest + poolAnswerMs, undefined, { ref: false })
      await Promise.all([ended(id => !those.has(id)), Promise.race([late, ended(id => those.has(id))])])
    },
  }
}

/** Milliseconds in which a pool must tell that an engine has ended, after the time that the engine has for it. */
const poolAnswerMs = 5_000

const noParking: ParkingChoice = { level: null, reason: 'Its engine cannot be parked.' }

/** Milliseconds in which an engine may save conversations before it is stopped: others wait for its memory. */
const maxSaveMs = 1_500
