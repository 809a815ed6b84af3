import { about, busyText, loadingText } from '../../core/jobs/job-progress.ts'
import type { Demand } from '../../core/models/fleet.ts'
import type { ModelPlan, PlannedDevice, PlannedEviction } from '../../core/models/model-plan.ts'
import { formatBytes } from '../engines/gguf/sizing.ts'
import {
  byUrgency,
  doOthersWait,
  nextStep,
  occupantsOf,
  placeWoken,
  type ResidencyRules,
  requestOf,
  type Step,
} from './advance.ts'
import { expectedWait } from './expected-wait.ts'
import { upcomingText } from './load-ahead.ts'
import {
  enginePaused,
  expectedLoadMs,
  expectedRunMs,
  freeResident,
  liveResidents,
  type ModelState,
  notStarted,
  pausedUntil,
  type Resident,
  type RunsNext,
  servingResidents,
  shortage,
  slotsOf,
} from './model-state.ts'
import { placementAs } from './new-resident.ts'
import { shareOn } from './occupancy.ts'
import type { Chosen, DeviceCapacity, Occupant, Reservation } from './place.ts'
import { onSharedMemory } from './shared-memory.ts'

/** The plan without what concerns the engine alone. */
export type Plan = Omit<
  ModelPlan,
  | 'advice'
  | 'leftDevices'
  | 'placement'
  | 'threads'
  | 'parking'
  | 'schedule'
  | 'benchmark'
  | 'adapters'
  | 'affinity'
  | 'guesses'
  | 'saved'
  | 'savedDetail'
> & {
  /** The layout with which it would be loaded. */
  layout: Pick<Resident, 'placement' | 'longer'>
}

export interface Situation {
  now: number
  demandOf: (state: ModelState) => Demand | undefined
  /** The models that wait for an engine. */
  pending: Iterable<ModelState>
  residents: () => Iterable<Resident>
  resident: (engineId: string) => Resident | undefined
  capacities: readonly DeviceCapacity[]
  rules: ResidencyRules
  runsNext: RunsNext
  /** Milliseconds until evicted engines have ended and their memory is free. */
  clearingMs: number
}

/**
 * Says what happens if one more request with a synchronous caller comes for the model now. Pure: it takes the decisions
 * of `nextStep` and `place`, with the memory that the models before it have reserved. `refusal`: why it is refused
 * whatever the devices are.
 */
export function planOf(state: ModelState, refusal: string | null, situation: Situation): Plan {
  const { now, pending, residents, resident, capacities, rules, runsNext, clearingMs } = situation
  const demand = withOneMore(situation.demandOf(state), state)
  const demandOf = (one: ModelState): Demand | undefined => (one === state ? demand : situation.demandOf(one))
  const order = byUrgency(new Set([...pending, state]), demandOf, now)
  const reserved: Reservation[] = []
  const othersWait = (one: ModelState): boolean => doOthersWait(one, order, demandOf)
  const occupied = () =>
    occupantsOf(residents(), reserved, {
      now,
      waits: one => demandOf(one) !== undefined,
      orderBound: rules.orderBound,
      runsNext,
    })
  for (const other of order.slice(0, order.indexOf(state))) {
    const step = nextStep(other, demandOf(other), now, occupied(), capacities, rules, othersWait(other))
    if ('reserve' in step && step.reserve) reserved.push(step.reserve)
  }
  const occupants = occupied()
  const step = nextStep(state, demand, now, occupants, capacities, rules, othersWait(state))
  const refused = refusal !== null && { status: 'refused' as const, detail: refusal, etaMs: null }
  const outcome = refused || outcomeOf(state, step, now, engineId => resident(engineId)?.serves.model.id)
  const waits = outcome.status === 'wait' && 'for' in step ? step.for : []
  const isPaused = outcome.status === 'wait' && step.do === 'wait' && step.pause !== undefined
  const chosen =
    outcome.status === 'load' || waits.length > 0 || isPaused
      ? choiceOf(state, occupants, capacities, othersWait(state))
      : noChoice
  const describe = (engineId: string): Occupant => occupants.find(one => one.engineId === engineId)!
  const why = (one: Occupant): string => reasonOf(one, resident(one.engineId), now)
  const asked = {
    ...state,
    waitsFor: waits,
    waitsUntil: step.do === 'drain' ? now : 'until' in step ? step.until : null,
  }
  const expectations = {
    now,
    demandOf: (one: ModelState) => (one === asked ? demand : demandOf(one)),
    order,
    capacities,
    resident,
    orderBound: rules.orderBound,
    clearingMs,
  }
  const evicts = chosen.evict.length > 0
  const layout = { placement: placementAs(state.placement, chosen), longer: chosen.longer }
  const expected = () => {
    const ends = step.do === 'wait' && step.pause ? step.pause.endsInMs : undefined
    if (ends === null) return null
    if (ends !== undefined) return Math.round(ends + expectedLoadMs(state))
    return Math.round(expectedWait(asked, expectations, evicts).etaMs)
  }
  return {
    modelId: state.model.id,
    ...outcome,
    etaMs: outcome.etaMs === undefined ? expected() : outcome.etaMs,
    evict: chosen.evict.map(describe).flatMap((one): PlannedEviction[] => {
      const { engineId, modelId } = identify(one, resident)
      return engineId ? [{ engineId, modelId, bytes: one.bytes, reloadMs: one.reloadMs, why: why(one) }] : []
    }),
    waitsFor: waits.map(describe).map(one => ({ ...identify(one, resident), why: why(one) })),
    devices: devicesOf(state.placement, chosen, occupants, situation),
    upcoming: upcomingText(runsNext(state.model.id), liveResidents(state)[0]),
    figures: figuresOf(state, layout, rules),
    layout,
  }
}

/** The demand for a model after one more request with a synchronous caller. */
function withOneMore(demand: Demand | undefined, { durations }: ModelState): Demand {
  if (!demand)
    return { interactive: 1, background: 0, oldestWaitMs: 0, expectedWorkMs: durations.runMs, referenceStart: null }
  const { interactive, expectedWorkMs } = demand
  const runMs = expectedRunMs(durations)
  return {
    ...demand,
    interactive: interactive + 1,
    expectedWorkMs: expectedWorkMs === null ? null : expectedWorkMs + runMs,
  }
}

/** `etaMs` undefined: as long as the queue expects. */
type Outcome = Pick<ModelPlan, 'status' | 'detail'> & { etaMs?: number | null }

function outcomeOf(
  state: ModelState,
  step: Step,
  now: number,
  modelOf: (engineId: string) => string | undefined,
): Outcome {
  const name = `'${state.model.id}'`
  if (freeResident(state, now))
    return { status: 'ready', detail: `${name} is loaded, and a request begins at once.`, etaMs: 0 }
  const pauseEnd = pausedUntil(state, now)
  if (pauseEnd !== null) return { status: 'wait', detail: enginePaused(state.model.id, pauseEnd - now).message }
  if (step.do === 'load') return { status: 'load', detail: loadSentence(state, step, step.evict.map(modelOf)) }
  const live = servingResidents(state)
  const ready = live.filter(resident => resident.state === 'ready')
  if (ready.length > 0)
    return {
      status: 'ready',
      detail: busyText(name, slotsOf(ready)),
    }
  if (live.length > 0) return { status: 'loading', detail: loadingText(name, state.failures?.reason ?? null) }
  switch (step.do) {
    case 'back off': {
      const { message: detail } = notStarted(state, state.failures!, now)
      return step.refuse === 'all' ? { status: 'refused', detail, etaMs: null } : { status: 'wait', detail }
    }
    case 'refuse':
      return { status: 'refused', detail: step.reason, etaMs: null }
    default:
      return { status: 'wait', detail: 'reason' in step ? step.reason : `${name} is not loaded.` }
  }
}

function loadSentence(
  state: ModelState,
  where: Chosen & { wakes?: string },
  evicted: readonly (string | undefined)[],
): string {
  const { model, placement, residents } = state
  const name = `'${model.id}'`
  const loadMs = expectedLoadMs(state)
  if (placement.kind === 'none') return `A request connects to the server of ${name}, and needs no memory here.`
  const what = residents.some(({ state }) => state !== 'parked') ? `another engine of ${name}` : name
  const names = [...new Set(evicted.filter(id => id !== model.id).map(id => `'${id}'`))]
  const unloads = names.length > 0 ? `unloads ${names.join(' and ')} and ` : ''
  if (where.wakes !== undefined)
    return `A request ${unloads}wakes the parked engine of ${name} on ${whereText(where)}, which takes ${about(loadMs)}.`
  const size =
    placement.bytesFrom === 'unknown'
      ? ` Its memory is not known, so ${formatBytes(placement.bytes)} are reserved; set 'memory' in infer.yaml.`
      : ''
  return `A request ${unloads}loads ${what} on ${whereText(where)}, which takes ${about(loadMs)}.${dividedText(state, where)}${size}`
}

const whereText = ({ devices, shares }: Chosen): string =>
  devices.map((id, at) => (shares ? `${id} (${formatBytes(shares[at]!)})` : id)).join(' and ')

/** Why infer has divided it among several cards. */
function dividedText({ placement }: ModelState, { devices, longer }: Chosen): string {
  if (longer) {
    const [one, has] = placement.devices === 1 ? ['one GPU', 'has'] : [`${placement.devices} GPUs`, 'have']
    return ` It is divided for a context of ${longer.tokens} tokens: ${one} ${has} room for ${longer.fewerTokens}.`
  }
  if (devices.length < 2 || placement.mostDevices === undefined) return ''
  const fewer = devices.length === 2 ? 'one GPU' : 'fewer GPUs'
  const instead = devices.length > placement.devices ? ' beside engines that cannot be unloaded now' : ''
  return ` It is divided, because ${fewer} would have no room for it${instead}.`
}

/** The devices that the model gets. */
interface Choice extends Chosen {
  /** Ids of the engines that make room, and of reserved memory. */
  evict: readonly string[]
}
const noChoice: Choice = { devices: [], evict: [] }

/** Where the model is placed now, or where the memory is that it waits for. */
function choiceOf(
  state: ModelState,
  occupants: readonly Occupant[],
  capacities: readonly DeviceCapacity[],
  othersWait: boolean,
): Choice {
  const mayEvict = servingResidents(state).length === 0 || shortage(state) > 0
  const decision = placeWoken(state, { ...requestOf(state, othersWait), mayEvict }, occupants, capacities)
  if (decision.do === 'load') return decision
  return decision.do === 'refuse' ? noChoice : { ...decision.where, evict: decision.reserve.engines }
}

/** `engineId` is null for reserved memory. */
const identify = ({ engineId, modelId }: Occupant, resident: Situation['resident']) => {
  const engine = resident(engineId)
  return { engineId: engine ? engineId : null, modelId: engine?.serves.model.id ?? modelId }
}

/** Why this engine is evicted, or waited for. */
function reasonOf(occupant: Occupant, resident: Resident | undefined, now: number): string {
  const again = `a reload takes ${about(occupant.reloadMs)}`
  if (!resident || (occupant.busy && resident.readyAt !== null && occupant.turnSince === null))
    return 'It is reserved for a model that is loaded first.'
  if (occupant.parked) return 'It is parked: it serves nobody, and its model is then loaded anew.'
  const runs = occupant.runsNext ?? 0
  const next = runs === 0 ? '' : ` ${upcomingText(runs, resident)}`
  if (!occupant.busy && resident.state === 'starting')
    return upcomingText(runs, resident) ?? 'It is being loaded ahead.'
  if (!occupant.busy) return `It is idle, last used ${ago(now - occupant.lastUsedAt)}; ${again}.${next}`
  if (resident.state === 'starting') return 'It is being loaded.'
  const { leases, owed, keptUntil } = resident
  const running = leases > 0 ? [`It runs ${counted(leases)}`] : []
  if (occupant.turnUntil === null) return `${running[0] ?? 'It is busy'}; ${again}.`
  if (now < keptUntil) return 'It was loaded for callers who have not come back yet.'
  return `${[...running, `${running.length > 0 ? 'still' : 'It'} serves ${counted(owed)} that waited for it`].join(' and ')}; ${again}.`
}

const counted = (requests: number): string => (requests === 1 ? '1 request' : `${requests} requests`)
const ago = (ms: number): string => (ms < 1_500 ? 'just now' : `${about(ms)} ago`)

function devicesOf(
  placement: ModelState['placement'],
  chosen: Choice,
  engines: readonly Occupant[],
  { capacities, resident }: Situation,
): PlannedDevice[] {
  const layouts = [placement, ...(placement.elsewhere ?? [])]
  const { bytes } = placementAs(placement, chosen)
  const occupants = onSharedMemory(engines, capacities)
  return capacities
    .filter(({ id, kind, pool, unknown }) =>
      layouts.some(
        one => one.pool === pool && (one.kind === kind || unknown !== undefined) && (one.only?.includes(id) ?? true),
      ),
    )
    .map(({ id, capacity, unknown = null, fault = unknown, pause }) => {
      const engines = occupants
        .filter(one => one.devices.includes(id))
        .map(one => ({
          ...identify(one, resident),
          bytes: shareOn(one, id),
          evicted: chosen.evict.includes(one.engineId),
          keptLoaded: one.pinned,
        }))
      const freeBytes = Math.max(0, capacity - engines.reduce((sum, { bytes }) => sum + bytes, 0))
      const neededBytes = shareOn({ bytes, ...chosen }, id)
      return {
        id,
        capacityBytes: capacity,
        freeBytes,
        fault,
        paused: pause ? `${id} ${pause.text}.` : null,
        neededBytes,
        engines,
      }
    })
}

function figuresOf(
  state: ModelState,
  { placement, longer }: Plan['layout'],
  { orderBound }: ResidencyRules,
): ModelPlan['figures'] {
  const { model, durations, firstLoad } = state
  const bytes = Math.max(placement.bytes, ...liveResidents(state).map(one => one.bytes))
  return {
    bytes,
    bytesFrom: bytes > placement.bytes ? 'measured' : (placement.bytesFrom ?? 'estimated'),
    loadMs: Math.round(expectedLoadMs(state)),
    loadMsFrom: durations.loadMs !== null ? 'measured' : firstLoad !== null ? 'other_models' : 'size',
    runMs: durations.runMs === null ? null : Math.round(durations.runMs),
    slots: longer?.slots ?? state.slots,
    orderBound: model.order_bound ?? orderBound,
  }
}
