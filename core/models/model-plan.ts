import type { ModelBenchmark } from './benchmark.ts'
import type { EnginePlacement } from './engine-placement.ts'
import type { LeftDevice, SavedConversations } from './fleet.ts'
import type { ScheduledState } from './model-schedule.ts'

/** What happens if a request for a model comes now, and the figures of that decision. Times are milliseconds. */
export interface ModelPlan {
  modelId: string
  /**
   * `ready`: it gets a slot of a loaded engine. `loading`: the model is being loaded. `load`: its load begins. `wait`:
   * its load must wait. `refused`: the request is refused.
   */
  status: 'ready' | 'loading' | 'load' | 'wait' | 'refused'
  /** What happens, as a sentence. That of a model that waits is the one that its waiting requests have. */
  detail: string
  /** What lets it run sooner, as sentences; null if nothing needs to be done. */
  advice: string | null
  /** Until the request begins; null when it is refused or nobody knows. */
  etaMs: number | null
  /** The engines that make room for it, busy ones included. */
  evict: PlannedEviction[]
  /** The busy ones among these, and reserved memory: it waits for them. */
  waitsFor: { engineId: string | null; modelId: string; why: string }[]
  /** The devices of the kind that it needs. */
  devices: PlannedDevice[]
  /** Where it runs, or would run; null if it is refused. */
  placement: EnginePlacement | null
  /** The cards that are left to others. */
  leftDevices: readonly LeftDevice[]
  /** What running executions that need it next mean for it, as a sentence; null if none does. */
  upcoming: string | null
  figures: PlanFigures
  /** Threads of its engine; null if it computes on GPUs alone, or with as many threads as it chooses. */
  threads: ProcessorThreads | null
  /**
   * What happens to its engine when another model needs the memory, and why, in sentences; null if it is refused, or its engine
   * cannot be parked at all.
   */
  parking: string | null
  /** What its schedule does now and next. */
  schedule: readonly ScheduledState[]
  /** The newest of the model with its current settings; null before any. */
  benchmark: ModelBenchmark | null
  /** The LoRA adapters of the model that are switched on. */
  adapters: readonly PlannedAdapter[]
  /** How prompts choose among its engines; null if it has one at most, or no prompts. */
  affinity: { engines: number; detail: string } | null
  /** What guesses tokens of its answers; null where nothing does. */
  guesses: PlannedGuesses | null
  /** Its conversations that are saved, and how much may be of all models; null if none are. */
  saved: (SavedConversations & { limitBytes: number; ageMs: number; disk: boolean }) | null
  /** Where they are saved, or why not, as a sentence; null for a model without conversations. */
  savedDetail: string | null
}

export interface PlannedGuesses {
  /** Tokens that are guessed at once, at most. */
  tokens: number
  /** A name on the hub or of a file; null where tokens are guessed from what the text repeats. */
  draftModel: string | null
  /** Bytes of its weights and its cache, which are part of the memory of the model; null where they are not known. */
  draftBytes: number | null
  /** The same as sentences. */
  detail: string
}

/** A LoRA adapter of a model. */
export interface PlannedAdapter {
  id: string
  /** Bytes of its tensors; null if its files are not on this machine. */
  bytes: number | null
  /** Why its requests fail, as a sentence; null if nothing is known against it. */
  fault: string | null
}

/** Threads with which an engine computes on the processor. */
export interface ProcessorThreads {
  count: number
  /** Why so many, as a part of a sentence. */
  reason: string
}

export interface PlannedEviction {
  engineId: string
  modelId: string
  /** On all of its devices together. */
  bytes: number
  /** Until it would be loaded again. */
  reloadMs: number
  why: string
}

export interface PlannedDevice {
  id: string
  /** Memory for models: the bookable part, without what other programs use. */
  capacityBytes: number
  freeBytes: number
  /** Why it is not used for now, as a sentence; null if it is. */
  fault: string | null
  /** Why it is given to other programs for now, as a sentence; null if it is not. */
  paused: string | null
  /** What the model would use of it; 0 on a device that it does not get. */
  neededBytes: number
  engines: { engineId: string | null; modelId: string; bytes: number; evicted: boolean; keptLoaded: boolean }[]
}

export interface PlanFigures {
  bytes: number
  /** `unknown`: a whole device, or a quarter of the memory of the processor, is reserved. */
  bytesFrom: BytesFrom
  loadMs: number
  /** `measured`: earlier loads. `other_models`: the speed at which others were loaded. `size`: 1 GB a second. */
  loadMsFrom: 'measured' | 'other_models' | 'size'
  /** Average of its requests; null before the first. */
  runMs: number | null
  /** Requests at a time of one engine. */
  slots: number
  orderBound: number
}

/** Where the memory comes from that is reserved for a model before its engine is measured. */
export type BytesFrom = 'configured' | 'estimated' | 'measured' | 'unknown'
