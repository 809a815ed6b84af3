import type { Failure } from '../failure.ts'
import type { Task } from '../schemas/task.ts'
import type { BenchmarkRun, ModelBenchmark } from './benchmark.ts'
import type { EngineAddress } from './engine-address.ts'
import type { EngineCall, EngineExchange, EngineListener } from './engine-call.ts'
import type { EngineOutput } from './engine-output.ts'
import type { EnginePlacement } from './engine-placement.ts'
import type { EngineSocket, SocketListener } from './engine-socket.ts'
import type { EngineTraits } from './engine-traits.ts'
import type { Model } from './model.ts'
import type { ModelPlan } from './model-plan.ts'
import type { Pauses } from './pause.ts'
import type { PoolSnapshot } from './pools.ts'
import type { SlotGrants } from './slot-grants.ts'
import type { UsedSlots } from './used-slots.ts'

/**
 * The interface between requests and engines. The server, the jobs and the CLI know GPUs only through these types;
 * `gpu/fleet.ts` implements them.
 */
export interface Fleet {
  /** Returns what the engine of this model can do. Plain data from its preset and its configuration; starts nothing. */
  traits(model: Model): EngineTraits
  /**
   * Takes a free slot of a ready engine for a request that has waited `waitedMs`, or returns undefined. Loads nothing.
   * Only the queue calls this, because any other caller would overtake the waiting requests. `alone`: only a slot of an
   * idle engine, which then gives no other slot until this one is released or shared; if none is idle, one of them gives
   * no other slot for `holdMs`. `prompt`: the body that the engine gets; of several engines the one that has computed its
   * beginning is preferred.
   */
  take(modelId: string, waitedMs?: number, alone?: { holdMs: number }, prompt?: string | Uint8Array): Lease | undefined
  /**
   * Tells the fleet that the number of waiting requests of a model has changed. The fleet loads the model, frees memory
   * for it or starts a further engine, depending on the demand of the queue. It offers slots through `SlotQueue.serve`,
   * and calls `SlotQueue.refuse` if the model cannot serve.
   */
  demandChanged(modelId: string): void
  /** Sets the queue that gets free slots. Called once, before the first `demandChanged`. */
  connect(queue: SlotQueue): void
  /**
   * Returns what this machine lacks for a task of the model, such as a program, as a sentence with what to install; null
   * if nothing is missing.
   */
  missing(model: Model, task: Task): string | null
  /** Returns whether and when the model can serve. Cheap. */
  activity(modelId: string): ModelActivity
  /** Returns the slots of the model's ready engines, and the slots that it will have when its first engines are loaded. */
  slots(modelId: string): { ready: number; planned: number }
  /** Returns what happens if a request for the model comes now. Reads its files if it has no engine; starts nothing. */
  plan(model: Model): Promise<ModelPlan>
  /** Starts loading without taking a slot; resolves when ready. */
  load(model: Model): Promise<void>
  /** Stops every engine of the model once its running requests have ended; resolves when its memory is free. */
  unload(modelId: string): Promise<void>
  /**
   * Tells the fleet that the configured models have changed. Engines of models that were removed or need a new engine take
   * no new requests and end after their running ones. Requests that wait for a changed model get its new engine; those
   * for a removed model are refused with `model_not_found`. Other engines are not affected. Resolves when this has begun.
   */
  reconfigured(): Promise<void>
  /**
   * Tells the fleet how many running executions need each model for a node that follows one which waits or runs. It loads
   * these ahead where memory is free, and unloads them last. The map may change later; call this again when it has other keys.
   */
  upcoming(models: ReadonlyMap<string, number>): void
  /** Which devices are given to other programs, and when. */
  pauses: Pauses
  /** Returns the current state for people and dashboards. */
  snapshot(): FleetSnapshot
  /** Returns the newest benchmark of a model with its current settings; null before any. Cheap. */
  benchmark(model: Model): ModelBenchmark | null
  /** Keeps these figures as the newest benchmark. Throws Failure `conflict` if no engine of the model is ready. */
  keepBenchmark(model: Model, runs: readonly BenchmarkRun[]): ModelBenchmark
  /** Returns the newest loads of a model since the start of the server, newest first. */
  loads(modelId: string): readonly EngineLoad[]
  /**
   * Asks the driver for the compute processes on each card, by device id. Devices whose processes are not known are
   * missing. Waits a second at most and never rejects. It starts a program: only for status pages.
   */
  deviceProcesses(): Promise<ReadonlyMap<string, readonly DeviceProcess[]>>
  /** The output of the engines, without secrets. */
  output: EngineOutput
  /** Returns the models without a ready engine for which synchronous callers wait. */
  unserved(): string[]
  /**
   * Another server has the data directory: takes no new leases, records engines there no more, and lets go of those that a
   * keeper has. Running requests go on, and engines that are children of this process; then `close`.
   */
  leave(): Promise<void>
  grants: SlotGrants
  /** Returns how many slots of the engines requests use, those of the server before included. */
  usedSlots(): UsedSlots
  /** Tells the fleet which slots the requests of the server before use now: no others get these. */
  usedElsewhere(slots: UsedSlots): void
  /** Stops taking new leases and ends every engine. Running requests get `deadlineMs` first. */
  close(deadlineMs: number): Promise<void>
}

/** The requests that wait for one model, as placement, eviction and scaling see them. */
export interface Demand {
  /** Requests with a synchronous caller. */
  interactive: number
  /** Background jobs that could start now. */
  background: number
  /**
   * Milliseconds since the organization and class that was served longest ago was served, or began to wait. If requests
   * with a synchronous caller wait, only those count.
   */
  oldestWaitMs: number
  /** Expected time of all requests on one slot, milliseconds; null while it is not known. */
  expectedWorkMs: number | null
  /**
   * When the reference order would have begun the request that is furthest behind it, on the fleet's clock; null while
   * it has begun none of those that wait.
   */
  referenceStart: number | null
}

/**
 * The order in which the queue would serve all requests if it did not matter which models are loaded: class, share of
 * the organization, arrival. The fleet computes when it would have begun each, and so who is behind it.
 */
export interface ReferenceOrder {
  /** Returns the model of the request that this order begins next; undefined when it has begun all that wait. */
  next(): string | undefined
  /** That request begins at this time of the fleet's clock, and takes a slot for `slotMs`. */
  begin(at: number, slotMs: number): void
  /** Forgets which requests it has begun. */
  reset(): void
}

/** The queue as the fleet calls it. Every method returns at once and never calls the fleet's `demandChanged`. */
export interface SlotQueue {
  /** Returns whether any request waits for the model. Called whenever a slot becomes free. */
  waits(modelId: string): boolean
  /** Returns the demand for the model; undefined if no request waits. */
  demand(modelId: string): Demand | undefined
  readonly reference: ReferenceOrder
  /** Tells the queue that slots of the model are free. The queue takes as many as it needs with `Fleet.take`. */
  serve(modelId: string): void
  /**
   * Tells the queue that the model cannot serve. It refuses the requests whose deadline is within `withinMs` and that have
   * waited for at least `waitedMs`.
   */
  refuse(modelId: string, failure: () => Failure, withinMs: number, waitedMs?: number): void
}

/** One slot of one engine. Release it in every outcome; releasing it twice does nothing. */
export interface Lease extends Disposable {
  readonly engineId: string
  readonly modelId: string
  /** Whether the engine and this server see the same folders. Otherwise files are in requests and answers. */
  readonly sharesFolders: boolean
  /** Milliseconds that the request waited for the slot, and how many of them the model was loading. */
  readonly waitedMs: number
  readonly loadedMs: number
  /**
   * How many other requests had a slot of the engine when it ended during the lease, by itself or because it made no
   * progress; undefined if it did not, or its machine may have failed. If there were none, this request has ended it.
   */
  readonly othersAtEnd: number | undefined
  /**
   * The organization whose request it serves: its conversation may be saved for later requests of it. Set before `open`;
   * unset, nothing is saved.
   */
  organizationId?: string | undefined
  /** The trace of the work (W3C Trace Context), which an engine on this machine gets as a header. */
  traceparent?: string | undefined
  /**
   * Names the body that the engine will get, of a text whose slot was taken before the body was known: of several engines, the
   * slot becomes one of that which has computed its beginning, if that has one free. Call it before `open`.
   */
  prefer?(prompt: string | Uint8Array): void
  /** Sends one request. Never throws: errors are reported to `listener.failed`. */
  open(call: EngineCall, listener: EngineListener): EngineExchange
  /** Calls the listener with the progress that the engine prints, if its preset can read it, until the release. */
  followProgress(listener: (progress: EngineProgress) => void): void
  /** Opens a WebSocket beside its requests, at a path of the engine. Never throws; closed at the latest with the lease. */
  connect(path: string, listener: SocketListener): EngineSocket
  /** Records that the engine may still do cancelled work: the slot is then free when it reports that it has stopped. */
  abandoned(): void
  /** What it has used of the devices since it was taken. Cheap; no longer grows once it is released. */
  used(): SlotUse
  release(): void
  /** Lets others have the other slots of the engine, although this one was taken `alone`. */
  share?(): void
  /** Ends the lease, but not the use of its slot, which another process has from now on. */
  detach?(): void
}

/** Use of devices by one slot. */
export interface SlotUse {
  /** Time on the slot × devices of the engine ÷ its slots, milliseconds. The processor counts as a device. */
  gpuMs: number
  /** Energy of those devices, shared among the slots that are in use, millijoules; null if one reports no power. */
  energyMj: number | null
}

/** `parked`: it serves nobody, has given the memory of its devices back, and can be woken faster than started anew. */
export type ResidentState = 'starting' | 'ready' | 'parked' | 'stopping'

/** One engine of a model from its start to its end. */
export interface EngineLoad {
  engineId: string
  /** Ids of its devices. */
  devices: string[]
  /** Memory that is reserved for it. */
  bytes: number
  state: 'loading' | 'ready' | 'failed' | 'ended'
  /** Epoch milliseconds. */
  startedAt: number
  /** Milliseconds until it was ready; null before, and if it never was. */
  loadMs: number | null
  /** Epoch milliseconds; null while it runs. */
  endedAt: number | null
  /** Why it ended or could not be loaded; null while it runs. */
  reason: string | null
}

/** A card of the machine that is left to others. `reason` is a sentence. */
export interface LeftDevice {
  id: string
  name: string
  reason: string
}

/** Conversations whose memory was saved, so that they need not be computed again. */
export interface SavedConversations {
  conversations: number
  bytes: number
}

export interface FleetSnapshot {
  devices: DeviceSnapshot[]
  /** Empty without `pools` in the configuration. */
  pools: PoolSnapshot[]
  leftDevices: readonly LeftDevice[]
  residents: ResidentSnapshot[]
  models: Record<string, ModelActivity>
  /**
   * `fault`: why nothing is saved although the configuration allows it, as a sentence; null otherwise. `models`: what is
   * saved of each model whose engine saves conversations.
   */
  saved: SavedConversations & {
    limitBytes: number
    fault: string | null
    models: Record<string, SavedConversations>
  }
}

/** Measurements of the driver for a card, every few seconds. Null if it does not report one. */
export interface DeviceReadings {
  /** Fraction of the driver's last sample period (up to a second) in which a kernel ran on the card: 0 to 1. */
  utilization: number | null
  temperatureCelsius: number | null
  powerWatts: number | null
  /** The configured limit. */
  powerLimitWatts: number | null
}

/** A compute process on a card, of infer or of another program. */
export interface DeviceProcess {
  /** As the driver reports it: mostly in the PID namespace of the host. */
  pid: number
  name: string | null
  /** Memory of the card that it uses; null if the driver does not report it. */
  bytes: number | null
  /** The engine to which it belongs; null for other programs, and if the driver reports PIDs of another namespace. */
  engineId: string | null
}

export interface DeviceSnapshot extends DeviceReadings {
  id: string
  name: string
  /** The maker of a card; `gpu` where it is unknown. */
  kind: 'nvidia' | 'amd' | 'intel' | 'gpu' | 'cpu'
  totalBytes: number
  /** Measured by the driver; null if it cannot measure it. */
  usedBytes: number | null
  /** Reserved for engines of infer. */
  bookedBytes: number
  /** Why it is not used for now, as a sentence; null if it is. */
  fault: string | null
  /** It is given to other programs: until when, epoch milliseconds (null: nobody knows), and why, as a sentence. */
  paused: { endsAt: number | null; reason: string } | null
  /** The pool to which it belongs; absent: this machine. */
  pool?: string
}

export interface ResidentSnapshot {
  engineId: string
  modelId: string
  /** Ids of the LoRA adapters of the model, which it serves too. */
  adapters: readonly string[]
  state: ResidentState
  pid: number | null
  /** Program and arguments; empty for a remote engine. */
  command: readonly string[]
  devices: string[]
  placement: EnginePlacement
  /** The pool in which it runs; absent on this machine. */
  pool?: string
  /** Of an engine that runs elsewhere and is ready; otherwise empty. */
  addresses: readonly EngineAddress[]
  bytes: number
  /** Bytes on each of its devices. */
  shares: number[]
  /** What was booked when it was started, and what it used when that was measured last; null before. */
  bookedBytes: number
  usedBytes: number | null
  slots: number
  leases: number
  startedAt: number
  /** When this server took it over from the server before, without loading it again; null if this server started it. */
  takenOverAt: number | null
  lastUsedAt: number
  /** When its machine ends it, and milliseconds that it waited for one in its pool; null where there is no such time. */
  endsAt: number | null
  queuedMs: number | null
  /** What happens to it when another model needs its memory, in sentences; null before it starts, and if its kind cannot be parked. */
  parking: string | null
  /** What running executions that need its model next mean for it, as a sentence; null if none does. */
  upcoming: string | null
}

export interface ModelActivity {
  status: 'warm' | 'loading' | 'cold' | 'unavailable' | 'disabled'
  /** Why it cannot serve, as a sentence, or null. */
  reason: string | null
  /** Whether it waits for devices that are given to other programs; `reason` names them. */
  paused: boolean
  /** Why its engine does not run yet that was accepted by a pool, as a sentence. */
  pending?: string
  /** Expected milliseconds until it can serve; null when unknown or not waiting. */
  etaMs: number | null
  /**
   * Expected milliseconds until a request that is refused now should come again: as `etaMs`, but where the load has not
   * begun, until it can begin, because a model is loaded only while a request waits for it.
   */
  retryMs: number | null
  /** Whether `etaMs` rests on measured loads of this model, or of models like it. */
  etaIsMeasured: boolean
  engineStarts: number
  engineFailures: number
  /** Of a model of a peer: what waits for it there, and how long one more request would, milliseconds; null if unknown. */
  elsewhere?: { waiting: number | null; etaMs: number | null }
}

/** Progress within one image or video. Each image is a pass of steps; a video of two models has two passes. */
export interface EngineProgress {
  /** From 1. */
  pass: number
  step: number
  steps: number
}
