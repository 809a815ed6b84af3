import type { Failure } from '../../core/failure.ts'
import type { EngineTraits, SpeechTraits } from '../../core/models/fleet.ts'
import type { Feature, Model } from '../../core/models/model.ts'
import { features } from '../../core/models/model.ts'
import { speechFormats } from '../../core/schemas/speech-format.ts'
import { defaultSpeechInput } from '../../core/schemas/speech-input.ts'
import type { Task } from '../../core/schemas/task.ts'
import type { Adapter } from './adapter.ts'

/** What is known about a launch when its command is put together. */
export interface LaunchFacts {
  /** Requests at once. */
  slots: number
  /** Threads for an engine that computes on the processor. */
  threads: number
  /** How many cards it was given; 0 on the processor. */
  gpus: number
  /** The share of each card's memory that was booked for it, what others use there included; 1 on the processor. */
  memoryShare: number
  /** Booked for it on its devices, in bytes. */
  bytes: number
  /** What the built-in engine uses its cards with, and where that lies; null on the processor. */
  backend: Backend | null
}

export interface Backend {
  gpu: 'cuda' | 'vulkan'
  folder: string
  /** What links in that folder lead to. */
  linked?: string
}

/** A program of the machine that an engine starts. */
export interface NeededProgram {
  /** Its name or path. */
  name: string
  /**
   * Resolves with why the program at this path cannot be used, as the end of a sentence; null when it can. Never
   * rejects.
   */
  test?: (file: string) => Promise<string | null>
}

/**
 * One kind of engine: data and small pure functions. Everything that differs between engines stands in one of these;
 * no code anywhere asks which engine it is.
 */
export interface Preset {
  name: string
  /** What can run it: cards only, the processor only, either, or nothing here because it runs elsewhere. */
  runsOn: 'gpu' | 'cpu' | 'either' | 'elsewhere'
  /** Whether it gets to a card only through a backend of the built-in engine, which must work here. */
  needsBackend?: boolean
  /** Its routes are assumed, because nothing is known about the program that it runs. */
  assumesRoutes?: boolean
  /** Programs of the machine without which it cannot do the task. */
  programs?(model: Model, task: Task): readonly NeededProgram[]
  /** Fields of the model's configuration that mean something to it; other engines refuse them. */
  settings?: readonly (typeof engineSettings)[number][]
  /** What the model's configuration must say and does not, as the end of a sentence; undefined when nothing. */
  lacks(model: Model): string | undefined
  /** Bytes that it takes where the model's configuration does not say and no file of a model tells. */
  memory?: number
  /** Requests at once where the model's configuration does not say. */
  slots: number
  channel(model: Model): 'port' | 'socket'
  /** What its sandbox shows besides its model and its program; absent where nothing is started here. */
  sandbox?: {
    /** Where the model's configuration does not say. */
    level: 'strict' | 'files'
    /** Absolute paths that it reads. */
    reads?(model: Model, facts: LaunchFacts): readonly string[]
    /** Programs that it starts, by name or path. */
    programs?: readonly string[]
    /** Whether it is this program, run again. */
    isOwn?: boolean
  }
  /** Program and arguments; `{port}` and `{socket}` stand for what the launcher finds. Empty when it runs elsewhere. */
  command(model: Model, facts: LaunchFacts): string[]
  /** Added to the environment that every engine gets. `key` is the secret of this launch. */
  env(model: Model, key: string): Record<string, string>
  /** The secret to send along as a bearer token: the one of the launch, or another. */
  key(model: Model, launchKey: string, environment: Readonly<Record<string, string | undefined>>): string | undefined
  /** Where it runs when it runs elsewhere. */
  address(model: Model): string | undefined
  /** Answers 2xx when it can work and 503 or nothing before; null for an engine that is always taken to be ready. */
  healthPath(model: Model): string | null
  /**
   * Whether its health is told as JSON with `running`, the requests that it still works on: then a slot whose request
   * was given up is free when the engine says so, and one that goes on with it is killed.
   */
  tellsRunning?(model: Model): boolean
  /** Where it says which requests it still works on, where that is not its health: a list of slots with `is_processing`. */
  runningPath?(model: Model): string | null
  /** How long it may go on with a request that was given up before it is killed, in milliseconds; the configured time when absent. */
  cancelGraceMs?(model: Model): number
  /** Where it describes itself once it is ready, and how requests are changed by that; null for nothing to read. */
  describedAt?(model: Model): string | null
  adapter?(description: unknown): Adapter | undefined
  /** How long a load may show nothing new before it has failed, in milliseconds. */
  loadStallMs(model: Model): number
  /** How long it keeps an idle connection open, in milliseconds; ours are closed before. */
  keepAliveMs: number
  traits(model: Model): EngineTraits
  /** What an answer that is not 2xx means: the caller's mistake, or `worker_error`. */
  failureOf: (status: number, body: string) => Failure
}

/** Fields of the configuration that only some engines know. */
export const engineSettings = [
  'gpu',
  'gpu_layers',
  'flash_attention',
  'kv_type',
  'threads',
  'batch_size',
  'mmap',
  'mlock',
] as const

/** Every feature, for engines that are taken at their word. */
export const everything: readonly Feature[] = features

export interface Abilities extends Omit<EngineTraits, 'features' | 'upstreamId' | 'speech'> {
  features: readonly Feature[]
  /** Of speech, what is not as with most: every format, and voices that only the engine knows. */
  speech?: Partial<SpeechTraits>
}

/** What a preset says its engine can do, with what the model's configuration says instead. */
export const traitsFor = (model: Model, abilities: Abilities): EngineTraits => ({
  ...abilities,
  features: new Set(model.features ?? abilities.features),
  rerankScores: model.rerank_scores ?? abilities.rerankScores,
  upstreamId: model.upstream_id ?? model.id,
  ...(model.tasks.includes('std/audio-speech')
    ? { speech: speechTraits(model, abilities.speech) }
    : { speech: undefined }),
})

const speechTraits = (
  model: Model,
  { formats = speechFormats, voices = null, aliases = {} }: Partial<SpeechTraits> = {},
): SpeechTraits => ({
  formats: model.speech_formats ?? formats,
  voices: model.voices ?? voices,
  aliases: { ...aliases, ...model.voice_aliases },
  longestInput: model.speech_input ?? defaultSpeechInput,
})

/** Whether it continues texts, and not only reads them. */
export const generates = ({ tasks }: Model): boolean =>
  tasks.includes('std/chat-completion') || tasks.includes('std/completion')

/** What is said of text by presets whose engines do none. */
export const noText = {
  rerankScores: 'probability',
  scoreBy: 'score',
  dimensions: false,
  base64: false,
  streamUsage: 'none',
  namedTool: false,
  promptLists: false,
} as const satisfies Partial<Abilities>
