import type { EnginePlacement } from '../core/models/engine-placement.ts'
import type { Model } from '../core/models/model.ts'
import type { ProcessorThreads } from '../core/models/model-plan.ts'
import { type EngineStart, engineOptionsOf, startHash } from './engine-options.ts'
import type { Launch } from './launcher/launcher.ts'
import type { Launched, Launches, LeftLaunch } from './launcher/launches.ts'
import type { ParkingChoice } from './placement/parking-choice.ts'
import type { ModelState, Resident } from './residency/model-state.ts'
import { newModelState } from './residency/model-state.ts'
import { newResident } from './residency/new-resident.ts'
import type { SlotsElsewhere } from './slots-elsewhere.ts'

/** Raised with each change of `EngineNote`, or of what presets read of a start: a note of another version is not read. */
const noteVersion = 1

/** What a server notes of a ready engine for the next one: plain data, which the keeper holds in its memory. */
export interface EngineNote {
  version: number
  /** The kind of engine. */
  engine: string
  start: EngineStart
  /** `startHash` of its start. */
  hash: string
  /** How it is booked. */
  booked: Pick<Resident, 'placement' | 'longer' | 'devices' | 'layers' | 'slots' | 'bytes' | 'shares' | 'bookedBytes'> &
    Pick<Resident, 'usedBytes' | 'parking' | 'parkedBytes'>
  running: EngineRun
}

/** What is decided of an engine when it is started. */
export interface EngineRun {
  placement: EnginePlacement
  threads: ProcessorThreads | null
  /** Folder of its model in which conversations are saved, and the folder in which it writes them. */
  conversations: string | undefined
  writes: string | undefined
  /** How it can be parked. */
  parking: ParkingChoice
}

/** Why the next server should end an engine, as a sentence. */
export interface RefusalNote {
  refusal: string
}

/** An engine that an earlier server has left, and that may be taken over. */
export interface LeftEngine {
  launchId: string
  engineId: string
  model: Model
  note: EngineNote
  adopt: () => Launched | undefined
  /** Why it ends after the requests of the server before, as a sentence; undefined if it stays. */
  ending: string | undefined
}

/** The note of a ready engine. */
export const noteOf = (resident: Resident, start: EngineStart, hash: string, running: EngineRun): EngineNote => {
  const { placement, longer, devices, layers, slots, bytes, shares } = resident
  const { bookedBytes, usedBytes, parking, parkedBytes } = resident
  return {
    version: noteVersion,
    engine: resident.serves.model.engine,
    start,
    hash,
    booked: { placement, longer, devices, layers, slots, bytes, shares, bookedBytes, usedBytes, parking, parkedBytes },
    running,
  }
}

/** The resident of an engine that is taken over. */
export function leftResident(state: ModelState, left: LeftEngine, now: number): Resident {
  const { engineId, note } = left
  const { booked } = note
  const own = newResident(state, engineId, booked, now)
  const draining = left.ending === undefined ? own.draining : 'unload'
  return { ...own, ...booked, launchedAt: now, takenOver: true, draining }
}

/** The same in a state of its own, for those who only need to know what is booked. */
export const bookedResident = (left: LeftEngine): Resident =>
  leftResident(newModelState(left.model, left.note.booked.placement, left.note.booked.slots), left, 0)

/** By what it is decided which engines may be taken over. */
export interface Choice {
  models: readonly Model[]
  dataDir: string
  environment: Readonly<Record<string, string | undefined>>
  folderFor: (model: Model) => Promise<string | undefined>
  /** The slots that the requests of the server before use. */
  elsewhere: Pick<SlotsElsewhere, 'of'>
}

/** Decides which of the engines that an earlier server has left may be taken over; the others with the reason. */
export async function chooseLeft(launches: Pick<Launches, 'left' | 'adopt'>, choice: Choice) {
  const taken: LeftEngine[] = []
  const ended: { launch: LeftLaunch; reason: string }[] = []
  for (const launch of launches.left()) {
    const { launchId, engineId, modelId } = launch
    const model = choice.models.find(({ id, enabled }) => id === modelId && enabled)
    const others = taken.filter(one => one.model === model && one.ending === undefined).length
    const refusal = await refusalOf(launch, model, others, choice)
    if (refusal && !(refusal.mayAnswer && choice.elsewhere.of(engineId) > 0))
      ended.push({ launch, reason: refusal.reason })
    else
      taken.push({
        launchId,
        engineId,
        model: model!,
        note: launch.note as EngineNote,
        adopt: () => launches.adopt(launchId),
        ending: refusal?.reason,
      })
  }
  return { taken, ended }
}

interface Refusal {
  /** A sentence. */
  reason: string
  /** Whether the engine works all the same, so that it may answer the requests of the server before. */
  mayAnswer: boolean
}

/** Why the engine cannot be taken over for the model; undefined if it can. */
async function refusalOf(
  { engineId, note }: Launch,
  model: Model | undefined,
  others: number,
  choice: Choice,
): Promise<Refusal | undefined> {
  if (isRefusal(note)) return useless(note.refusal)
  if (model === undefined) return useless('Its model is not offered any more.')
  if (note === null || note === undefined) return useless('It was not ready.')
  if (others >= Math.max(1, model.replicas.min, model.replicas.max)) return useless('Its model has fewer engines now.')
  const { version, engine, start, hash, running } = note as EngineNote
  if (version !== noteVersion) return otherVersion
  if (engine !== model.engine) return useless('Its model has another kind of engine now.')
  // The preset of another version may have noted facts that the one here does not understand.
  try {
    if (running.conversations !== undefined && (await choice.folderFor(model)) !== running.conversations)
      return savedElsewhere
    const options = engineOptionsOf(model, engineId, start, choice.environment)
    return (await startHash(model, options, choice)) === hash ? undefined : startedDifferently
  } catch {
    return otherVersion
  }
}

const useless = (reason: string): Refusal => ({ reason, mayAnswer: false })
const otherVersion = useless('It was started by another version.')
const savedElsewhere: Refusal = { reason: 'Its conversations are saved elsewhere now.', mayAnswer: true }
const startedDifferently: Refusal = { reason: 'It would be started differently now.', mayAnswer: true }

const isRefusal = (note: unknown): note is RefusalNote =>
  typeof (note as Partial<RefusalNote> | null | undefined)?.refusal === 'string'
