import { selfCommand } from '../../core/assets.ts'
import type { Failure, FailureCode } from '../../core/failure.ts'
import { ffmpegVersion } from '../../core/media/ffmpeg.ts'
import type { EngineCall, EngineListener } from '../../core/models/engine-call.ts'
import type { EngineTraits, SpeechTraits } from '../../core/models/engine-traits.ts'
import { type Feature, features, type Model } from '../../core/models/model.ts'
import { defaultSpeechInput, speechFormats } from '../../core/schemas/speech-format.ts'
import { isFor, isVideoTask, type Task } from '../../core/schemas/task.ts'
import { promptRefusal } from '../../core/tasks/protocols/comfyui/history.ts'
import { engineErrorIn, failureOfEngine } from '../../core/tasks/protocols/engine-error.ts'
import type { MemoryPlan } from '../estimate/estimate.ts'
import type { engineSettings } from './engine-settings.ts'
import type { ParkingLevel, ParkingWay } from './parking-way.ts'

export interface LaunchFacts {
  slots: number
  /** Threads for an engine that runs on the processor. */
  threads: number
  /** Number of its cards; 0 on the processor. */
  gpus: number
  /** Booked share of its smallest device's whole memory, 0 to 1; the same of what is free there before it starts. */
  memoryShare: number
  freeShare: number
  /** Bytes booked for it on all of its devices. */
  bytes: number
  /** The backend by which the built-in engine uses its cards; null on the processor. */
  backend: Backend | null
  /** How it is to use its memory, from the estimate that booked it; absent where that knew only the size of files. */
  plan?: MemoryPlan | undefined
  /** Layers on each of its cards; absent where infer does not divide them. */
  layers?: readonly number[] | undefined
  /** Folder in which it saves conversations, or its slots; absent if it does not. */
  conversations?: string | undefined
  /** How it is to be parked; absent if it is not. */
  parking?: ParkingLevel | undefined
}

export interface Backend {
  gpu: 'cuda' | 'vulkan'
  folder: string
  /** Target folder of the links in `folder`. */
  linked?: string
}

export interface NeededProgram {
  /** Its name or path. */
  name: string
  /**
   * Resolves with why the program at this path cannot be used, as the end of a sentence; null when it can. Never
   * rejects.
   */
  test?: (file: string) => Promise<string | null>
  /** Folders below `engines` of the data directory in which it is looked for before the PATH: see `enginePath`. */
  environments?: readonly string[]
  /** The command that installs it, where that is not a package of the system. */
  install?: string
  /** What to do instead, as a sentence, where no command installs it. */
  advice?: string
}

/** How an engine that is a program of its own comes to a machine. */
export interface EngineInstallation {
  /** The program that must be found; absent for an engine that a configured command starts. */
  program?: string
  /** Environments below `engines` of the data directory that can have it, besides one with the name of the engine. */
  environments?: readonly string[]
  /** How to install it, as a sentence. */
  advice: string
}

/**
 * Patterns for lines of an engine's output. Engines print the same kind of bar for other work, so bars count only between
 * a line that `begins` the steps of an image or video and one that `ends` them.
 */
export interface ProgressLines {
  begins: RegExp
  /** A bar, with the groups `step` and `steps`. */
  bar: RegExp
  ends: RegExp
}

/** How an engine serves LoRA adapters. Requests name an adapter as their model. */
export interface AdapterSupport {
  reads: 'gguf' | 'folder'
  /** Whether it can change how strongly an adapter applies. */
  scales: boolean
  /**
   * Members of a request, as JSON text; absent if the name in it is enough. `at`: the place of the adapter among those of the
   * start; undefined for a request to the base.
   */
  members?(at: number | undefined, scale: number): string
  /** Where it loads and unloads adapters while it runs; absent if it has only those of its start. */
  routes?: { load: string; unload: string }
}

/**
 * One kind of engine: data and small pure functions. Every difference between engines is a field here; no other code
 * asks which engine it is.
 */
export interface Preset {
  name: string
  /** Where it runs: on cards only, on the processor only, or on either; `elsewhere` when infer does not start it. */
  runsOn: 'gpu' | 'cpu' | 'either' | 'elsewhere'
  /** True when it can use a card only with a backend of the built-in engine that works on this machine. */
  needsBackend?: boolean
  /** True when it may be built for Vulkan, which uses cards that have no CUDA, ROCm or Level Zero. */
  usesVulkan?: boolean
  /** True when it is told one share of the whole memory of its cards, and starts only where as much is free on each. */
  takesShare?: boolean
  /** The least share of each card that it is told to take; absent if it is told what is booked. */
  leastShare?: number
  /** True when it computes with as many threads as infer tells it. */
  takesThreads?: boolean
  /** True when its routes are assumed, because nothing is known about the program that it runs. */
  assumesRoutes?: boolean
  /**
   * How it is installed for models with these tasks; absent for an engine that is built in, that a configured command
   * starts, or that infer does not start.
   */
  installation?(tasks: readonly Task[]): EngineInstallation
  /** A public image that has it, and its program there; absent if there is none. */
  image?(model: Model): { name: string; program: string }
  /** Programs that must be installed for the task. */
  programs?(model: Model, task: Task): readonly NeededProgram[]
  /** Folders below `engines` of the data directory in which its program is looked for before the PATH: see `enginePath`. */
  environments?(model: Model): readonly string[]
  /** The `engineSettings` that it supports; others are refused. */
  settings?: readonly (typeof engineSettings)[number][]
  /** Further arguments on all nodes but the first: see `LaunchOptions`. Absent: it cannot span nodes. */
  otherNodes?: readonly string[]
  /** What is missing or wrong in the model's configuration, as the end of a sentence; undefined when nothing is. */
  configurationFault(model: Model): string | undefined
  /** Default memory in bytes for models without a source file. */
  memory?: number
  /** Default number of concurrent requests. */
  slots: number
  /** `facts`: of a launch, if it depends on that. */
  channel(model: Model, facts?: LaunchFacts): 'port' | 'socket'
  /** How it is parked, by what it does with its weights; absent if it cannot be. */
  parking?: Readonly<Partial<Record<ParkingLevel, ParkingWay>>>
  /** What its sandbox allows besides its model and its program; absent when infer starts no process. */
  sandbox?: {
    /** Default level. */
    level: 'strict' | 'files'
    /** Absolute paths that it reads, with `{data_directory}` as in its command. */
    reads?(model: Model, facts: LaunchFacts): readonly string[]
    /** Programs that it starts, by name or path. */
    programs?: readonly string[]
    /** True for built-in engines, which run from this executable. */
    isOwn?: boolean
  }
  /**
   * Program and arguments; the launcher replaces `{port}`, `{socket}`, `{home}` (a folder of the model), `{outputs}` (a
   * folder that it shares with the server) and `{data_directory}`. Empty when infer does not start it.
   */
  command(model: Model, facts: LaunchFacts): string[]
  /** Variables added to the environment of every engine. `key` is the secret of this launch. */
  env(model: Model, key: string, facts?: LaunchFacts): Record<string, string>
  /** Bearer token of requests to it: the secret of the launch, or a configured one. */
  key(model: Model, launchKey: string, environment: Readonly<Record<string, string | undefined>>): string | undefined
  /** Headers of all requests to it besides that, names and values alternating. */
  headers?: readonly string[]
  /** Whether it gets the `traceparent` of requests although infer does not start it. */
  takesTrace?: true
  /** Its origins when infer does not start it. */
  addresses(model: Model): readonly string[] | undefined
  /** Path that answers 2xx when it can work and 503 or nothing before; null for an engine that is always ready. */
  healthPath(model: Model): string | null
  /**
   * True when its health is JSON with `running`, the number of requests that it works on. The slot of a cancelled
   * request is then free only when the engine reports that it has stopped, and an engine that does not stop is killed.
   */
  reportsRunning?(model: Model): boolean
  /** Path of a list of slots with `is_processing`, for an engine that reports running requests there. */
  runningPath?(model: Model): string | null
  /** Least milliseconds between two questions for the running requests; by default 20. */
  runningPollMs?: number
  /**
   * True when it saves and restores its slots by the routes of llama-server, and requests can name their slot. infer then
   * decides what each slot has, and saves its conversations. It gets a folder for that in `conversations`.
   */
  savesSlots?: boolean
  /** Path at which it describes itself once it is ready; null when there is none. `converter` gets the description. */
  descriptionPath?(model: Model): string | null
  converter?(description: unknown): Converter | undefined
  /** Absent if it has no LoRA adapters. */
  adapters?: AdapterSupport | undefined
  /** How its output shows the progress of a generation, if it reports it nowhere else and works on one at a time. */
  progress?: ProgressLines
  /** A load without progress for this many milliseconds has failed. */
  loadStallMs(model: Model): number
  /** Milliseconds after which infer closes an idle connection; less than the engine keeps it open. */
  keepAliveMs: number
  traits(model: Model): EngineTraits
  /** The failure for an answer that is not 2xx: the caller's mistake, or `worker_error`. */
  failureOf: (status: number, body: string) => Failure
}

/** Features that an engine without them would ignore silently: only a model's configuration or a preset can name them. */
const neverAssumed: ReadonlySet<Feature> = new Set(['voice_cloning', 'variations', 'transparent_background'])

/** Every feature that is assumed of engines about which nothing is known. */
export const allFeatures: readonly Feature[] = features.filter(feature => !neverAssumed.has(feature))

export interface Abilities extends Partial<Omit<EngineTraits, 'features' | 'upstreamId' | 'speech'>> {
  routes: EngineTraits['routes']
  features?: readonly Feature[]
  /** Speech traits that differ from the defaults: every format, and voices that only the engine knows. */
  speech?: Partial<SpeechTraits>
}

/** The traits of engines without text tasks. */
const defaultTraits = {
  rerankScores: 'probability',
  scoreBy: 'score',
  dimensions: false,
  base64: false,
  streamUsage: 'none',
  namedTool: false,
  promptLists: false,
} as const satisfies Partial<EngineTraits>

/** The name by which an engine knows the model, unless its preset says otherwise. */
export const upstreamId = ({ upstream_id, id }: Model): string => upstream_id ?? id

type PresetOptions = Partial<Omit<Preset, 'traits' | 'failureOf' | 'command' | 'installation'>> &
  Pick<Preset, 'name' | 'slots'> & {
    /** Program and arguments, some of them in groups. */
    command: (model: Model, facts: LaunchFacts) => readonly (string | readonly string[])[]
    installation?: EngineInstallation | Preset['installation']
    abilities: (model: Model) => Abilities
    upstreamId?: (model: Model) => string
    /** Error answers that mean something else than their status says. */
    quirks?: readonly Quirk[]
    /** The failure for an error answer with this code; undefined for one that means what its status says. */
    refusal?: (code: string) => Failure | undefined
  }

/**
 * Completes a preset. By default the engine runs on cards or the processor, listens on a port, gets the secret of its
 * launch as key, answers `/health`, and closes idle connections after 5 s, as most HTTP servers do. The configuration of
 * a model overrides its traits.
 */
export const definePreset = ({
  abilities,
  upstreamId: nameOf = upstreamId,
  quirks,
  refusal,
  command,
  installation,
  ...own
}: PresetOptions): Preset => ({
  runsOn: 'either',
  configurationFault: () => undefined,
  channel: () => 'port',
  sandbox: { level: 'files' },
  env: () => ({}),
  key: (_model, launchKey) => launchKey,
  addresses: () => undefined,
  healthPath: () => '/health',
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 4_000,
  ...own,
  command: (model, facts) => command(model, facts).flat(),
  ...(installation && { installation: typeof installation === 'function' ? installation : () => installation }),
  failureOf(status, body) {
    const { code } = refusal ? engineErrorIn(body) : { code: null }
    return (typeof code === 'string' ? refusal?.(code) : undefined) ?? engineRefusal(status, body, quirks)
  },
  traits(model) {
    const { features = [], speech, ...traits } = { ...defaultTraits, ...abilities(model) }
    return {
      ...traits,
      features: new Set(model.features ?? features),
      rerankScores: model.rerank_scores ?? traits.rerankScores,
      upstreamId: nameOf(model),
      inputImages: model.input_images ?? traits.inputImages ?? 1,
      speech: isFor(model.tasks, 'synthesize') ? speechTraits(model, speech) : undefined,
    }
  },
})

const speechTraits = (
  model: Model,
  { formats = speechFormats, voices = null, aliases = {}, reference }: Partial<SpeechTraits> = {},
): SpeechTraits => ({
  formats: model.speech_formats ?? formats,
  voices: model.voices ?? voices,
  aliases: { ...aliases, ...model.voice_aliases },
  longestInput: model.speech_input ?? defaultSpeechInput,
  reference,
})

export interface Quirk {
  status: number
  pattern: RegExp
  code: FailureCode
}

/**
 * Converts an engine's answer that is not 2xx to a Failure: for a graph by what ComfyUI says of its nodes, else by the
 * first matching quirk, else by its status and text.
 */
function engineRefusal(status: number, body: string, quirks: readonly Quirk[] = []): Failure {
  const refused = promptRefusal(body)
  if (refused) return refused
  const error = engineErrorIn(body)
  const text = `${error.code ?? ''} ${error.type} ${error.message}`
  return failureOfEngine(status, error, quirks.find(one => one.status === status && one.pattern.test(text))?.code)
}

/** An option with its value; nothing without a value. */
export const option = (name: string, value: string | number | undefined): string[] =>
  value === undefined ? [] : [name, String(value)]

/** An option with its value, unless the model's own arguments name it. */
export const unlessGiven = ({ args }: Model, name: string, value: string | number | undefined): string[] =>
  args.some(arg => arg === name || arg.startsWith(`${name}=`)) ? [] : option(name, value)

/** Arguments of most servers: they listen on this machine only. */
export const onLoopback = ['--host', '127.0.0.1', '--port', '{port}']

/** The key of an engine that supports none; its port can be reached from this machine only. */
export const noKey = (): undefined => undefined

/** The fields of an engine that is this executable with other arguments. */
export const ownEngine = {
  channel: () => 'socket',
  env: (_model: Model, key: string) => ({ ...selfCommand([]).env, INFER_ENGINE_KEY: key }),
  keepAliveMs: 110_000,
} as const satisfies Partial<Preset>

export function ownCommand(...words: readonly (readonly string[])[]): string[] {
  const { file, args } = selfCommand(['engine', ...words.flat()])
  return [file, ...args]
}

/** The ffmpeg that an engine starts for video tasks, by name or path. */
export const ffmpegFor = (task: Task, name = 'ffmpeg'): NeededProgram[] => {
  const test = async (file: string) => {
    const answer = await ffmpegVersion(file)
    return 'fault' in answer ? answer.fault : null
  }
  return isVideoTask(task) ? [{ name, test }] : []
}

/** The fault of a model without a source. */
export const needsSource = ({ source }: Model, what: string): string | undefined =>
  source ? undefined : `it needs 'source', ${what}.`

/** The fault of a model that is to guess tokens but writes none. */
export const guessFault = (model: Model): string | undefined =>
  model.speculative && !generates(model)
    ? "'speculative' guesses tokens of answers, and the model writes none. Remove it."
    : undefined

/** The fault of a model whose engine does one thing at a time. */
export const oneAtATime = ({ concurrency = 1 }: Model, does: string): string | undefined =>
  concurrency > 1 ? `it ${does} at a time, so its 'concurrency' must be 1.` : undefined

/** How an engine without a score route scores pairs. */
export const scoreByRerank = ({ tasks }: Model): 'rerank' | 'embeddings' =>
  isFor(tasks, 'rerank') ? 'rerank' : 'embeddings'

export const generates = ({ tasks }: Model): boolean => isFor(tasks, 'chat', 'complete')

/** A request in the form that one engine needs, and the listener that converts its answer back to the usual form. */
export interface ConvertedCall {
  call: EngineCall
  listener: EngineListener
}

/**
 * Changes requests that this engine cannot process as they are. Returns undefined for all others, after one search in
 * the body. Rejects with Failure for a request that cannot be converted.
 */
export type Converter = (call: EngineCall, listener: EngineListener) => Promise<ConvertedCall> | undefined

/** Returns the text of a JSON body; undefined for a streamed body. */
export function bodyText(body: EngineCall['body']): string | undefined {
  if (typeof body === 'string') return body
  if (!(body instanceof Uint8Array)) return undefined
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
}
