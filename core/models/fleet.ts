import type { Readable } from 'node:stream'
import type { Failure } from '../failure.ts'
import type { SpeechFormat } from '../schemas/speech-format.ts'
import type { Task } from '../schemas/task.ts'
import type { Feature, Model } from './model.ts'

/**
 * The seam between what is asked for and what runs it. The server, the jobs and the CLI know GPUs only through
 * these types; `gpu/fleet.ts` fulfils them.
 */
export interface Fleet {
  /** What the engine of this model can do. Pure data from its preset and its configuration; starts nothing. */
  traits(model: Model): EngineTraits
  /**
   * Takes a free slot of a ready engine for a request that has waited `waitedMs`, or returns undefined. Loads nothing.
   * Only the queue calls this: whoever else did would pass those who wait.
   */
  take(modelId: string, waitedMs?: number): Lease | undefined
  /**
   * Tells that requests wait for the model, or fewer than before. It is loaded, given room or another engine as the
   * queue's demand asks for; every slot is offered through `SlotQueue.serve`, and what keeps the model from serving is
   * told through `SlotQueue.refuse`.
   */
  demandChanged(modelId: string): void
  /** Sets the queue that is offered free slots. Called once, before the first `demandChanged`. */
  connect(queue: SlotQueue): void
  /**
   * What this machine lacks for a task of the model, such as a program, as a sentence with what to install; null when
   * nothing is missing.
   */
  missing(model: Model, task: Task): string | null
  /** Whether and when the model can serve. Cheap. */
  activity(modelId: string): ModelActivity
  /** Slots of the model's ready engines, and those that it has once its first engines are loaded. */
  slots(modelId: string): { ready: number; planned: number }
  /** Starts loading without taking a slot; resolves when ready. */
  load(model: Model): Promise<void>
  /** Stops every engine of the model once its running requests have ended; resolves when its memory is free. */
  unload(modelId: string): Promise<void>
  /**
   * Other models are configured than before. Engines of models that are gone or that need another engine take no new
   * requests and end after those they have; requests that wait for a changed model get its new engine, those for a
   * removed one are refused with `model_not_found`. What did not change is not touched. Resolves when this is under way.
   */
  reconfigured(): Promise<void>
  /** Everything a person or a dashboard may want to know, as of now. */
  snapshot(): FleetSnapshot
  /**
   * Asks the driver for the compute processes on each card, by device id. Devices whose processes are
   * not known are missing. Waits about a second at most and never throws. Starts a program: for status pages, not for requests
   * to models.
   */
  deviceProcesses(): Promise<ReadonlyMap<string, readonly DeviceProcess[]>>
  /** What engines have printed, without secrets. */
  output: EngineOutput
  /** Stops taking new leases and ends every engine. Running requests get `deadlineMs` first. */
  close(deadlineMs: number): Promise<void>
}

/** The requests that wait for one model, as placement, eviction and scaling see them. */
export interface Demand {
  /** With a synchronous caller. */
  interactive: number
  /** Jobs without one that could begin now. */
  background: number
  /**
   * Milliseconds since the organization and class that was served longest ago was served, or began to wait; of those with
   * a synchronous caller where there are any.
   */
  oldestWaitMs: number
  /** Milliseconds of one slot that all of them are expected to take; null while that is not known. */
  expectedWorkMs: number | null
}

/** The queue as the fleet calls it. Every method returns at once and never calls the fleet's `demandChanged`. */
export interface SlotQueue {
  /** Whether any request waits for the model. Called whenever a slot becomes free. */
  waits(modelId: string): boolean
  /** What waits for the model; undefined where nothing does. */
  demand(modelId: string): Demand | undefined
  /** Slots of the model are free: takes as many as there is use for, by `Fleet.take`. */
  serve(modelId: string): void
  /** The model cannot serve: refuses all requests, or those whose time ends within so many milliseconds. */
  refuse(modelId: string, failure: () => Failure, withinMs: number): void
}

/** Describes a model that synthesizes speech. Plain data. */
export interface SpeechTraits {
  /** Formats that its engine writes; infer converts the engine's WAV to the others. */
  formats: readonly SpeechFormat[]
  /** Null where they are not known: then the engine decides whether a voice exists. */
  voices: readonly string[] | null
  /** Further names of voices, each with the voice that it stands for. */
  aliases: Readonly<Record<string, string>>
  /** Characters of one text. */
  longestInput: number
}

/** Names how requests become HTTP to an engine. What a name stands for is in core/tasks/protocols. */
export type EngineProtocolName = 'openai-text' | 'openai-audio' | 'infer-generation'

/** Where an engine answers a task, and by which protocol. */
export interface EngineRoute {
  protocol: EngineProtocolName
  path: string
}

/** How to speak to one kind of engine. Data only: what is done with it stands in core/tasks. */
export interface EngineTraits {
  /** A task without a route cannot be asked of the engine. */
  routes: Partial<Record<Task, EngineRoute>>
  features: ReadonlySet<Feature>
  /** Whether relevance scores come as probabilities or as raw logits. */
  rerankScores: 'probability' | 'logit'
  /** How pair scores are had: its own route, its rerank route, or cosines of its embeddings. */
  scoreBy: 'score' | 'rerank' | 'embeddings'
  /** Whether the engine itself honours `dimensions` and `encoding_format: base64`. */
  dimensions: boolean
  base64: boolean
  /**
   * How a stream says what it used: not at all, at its end (`stream_options.include_usage`), in every event
   * (`continuous_usage_stats`), or at its end and the prompt before its first token (`return_progress`).
   */
  streamUsage: 'none' | 'end' | 'continuous' | 'progress'
  /** Whether `tool_choice` may name a tool. Otherwise the engine gets that tool alone, and `required`. */
  namedTool: boolean
  /** Whether `json_object` is asked of it as a schema, because it takes any JSON value for one; by its name when absent. */
  jsonObject?: 'schema'
  /** Whether a completion takes several prompts at once, streamed too. */
  promptLists: boolean
  /** Whether a translation is a transcription with the field `translate`; others have a route for it. */
  translateField?: boolean
  /** Of a model that speaks; absent from the others. */
  speech?: SpeechTraits
  /** Name of the model toward the engine. */
  upstreamId: string
}

/** One slot of one engine. Give it back exactly once, in every outcome; giving back twice does nothing. */
export interface Lease extends Disposable {
  readonly engineId: string
  readonly modelId: string
  /** Milliseconds that its request waited for it, and how many of those went into loading the model. */
  readonly waitedMs: number
  readonly loadedMs: number
  /** Opens one request. Never throws: what goes wrong reaches `listener.failed`. */
  open(call: EngineCall, listener: EngineListener): Exchange
  release(): void
}

export interface EngineCall {
  /** POST when absent; a GET has no body. */
  method?: 'POST' | 'GET'
  path: string
  /** JSON, where nothing else is said. */
  body: string | Uint8Array | StreamedBody
  contentType?: string
  /** Milliseconds for which it may be at work in silence beyond what requests of its model may. */
  patienceMs?: number
  /** False: the answer is collected by the caller and bounded by `maxBytes`. True: it is relayed without end. */
  stream: boolean
  maxBytes: number
}

/** What is too large to be held: read as it is sent, and from its start where it has to be sent again. */
export interface StreamedBody {
  /** How long it is. */
  bytes: number
  /** A Failure that it breaks off with is the caller's own, and no fault of the engine. */
  open(): Readable
}

/**
 * What the caller hears, in this order: `accepted`, any number of `chunk`, then `finished`; or at any point `failed`,
 * after which nothing follows. A chunk belongs to the listener: it may be kept without copying.
 */
export interface EngineListener {
  accepted(contentType: string): void
  chunk(bytes: Buffer): void
  finished(): void
  /** `worker_error` when the engine broke, `timeout` when it hangs (both retryable), otherwise what the engine itself refused, normalised. */
  failed(failure: Failure): void
}

/** A request on its way. */
export interface Exchange {
  /** Stops reading from the engine until `resume`, for a reader that cannot keep up. */
  pause(): void
  resume(): void
  /** The caller is gone: the engine's request is ended at once. `failed` is not called for it. */
  abort(): void
}

/** A line that an engine printed. */
export interface EngineLine {
  /** Epoch milliseconds. */
  at: number
  modelId: string
  engineId: string
  text: string
}

export interface EngineOutput {
  /**
   * What is kept, oldest first: up to a megabyte of each engine that runs, and of the last few that have ended; the
   * newest `most` lines of it.
   */
  recent(modelId?: string, most?: number): EngineLine[]
  /** Calls the listener with each line from now on, until the function that it returns is called. */
  follow(listener: (line: EngineLine) => void): () => void
}

export type ResidentState = 'starting' | 'ready' | 'stopping'

export interface FleetSnapshot {
  devices: DeviceSnapshot[]
  residents: ResidentSnapshot[]
  models: Record<string, ModelActivity>
}

/** What the driver measures on a card, every few seconds. Null where it does not report it. */
export interface DeviceReadings {
  /** Fraction of the driver's last sample period (up to a second) in which a kernel ran on the card: 0 to 1. */
  utilization: number | null
  temperatureCelsius: number | null
  powerWatts: number | null
  /** The limit that is set. */
  powerLimitWatts: number | null
}

/** A compute process on a card, of infer or of anybody else. */
export interface DeviceProcess {
  /** As the driver reports it: mostly in the PID namespace of the host. */
  pid: number
  name: string | null
  /** Memory of the card that it uses; null where the driver does not report it. */
  bytes: number | null
  /** The engine to whose process tree it belongs; null for others, and where the driver reports PIDs of another namespace. */
  engineId: string | null
}

export interface DeviceSnapshot extends DeviceReadings {
  id: string
  name: string
  kind: 'nvidia' | 'cpu'
  totalBytes: number
  /** Measured by the driver; null where it cannot be. */
  usedBytes: number | null
  /** Booked by us. */
  bookedBytes: number
}

export interface ResidentSnapshot {
  engineId: string
  modelId: string
  state: ResidentState
  pid: number | null
  /** Program and arguments; empty where it runs elsewhere. */
  command: readonly string[]
  devices: string[]
  bytes: number
  slots: number
  leases: number
  startedAt: number
  lastUsedAt: number
}

export interface ModelActivity {
  status: 'warm' | 'loading' | 'cold' | 'unavailable' | 'disabled'
  /** Why it cannot serve, as a sentence, or null. */
  reason: string | null
  /** Expected milliseconds until it can serve; null when unknown or not waiting. */
  etaMs: number | null
  engineStarts: number
  engineFailures: number
}
