import type { RegionLabel } from '../schemas/region.ts'
import type { SpeechFormat } from '../schemas/speech-format.ts'
import type { Operation, Task } from '../schemas/task.ts'
import type { ComfyuiSettings } from './comfyui/settings.ts'
import type { Feature, Model } from './model.ts'
import type { ModelName } from './model-names.ts'
import type { Profile } from './name-fields.ts'

/** Request fields for images and videos that OpenAI does not have. */
export type EngineField =
  | 'response_format'
  | 'output_format'
  | 'seed'
  | 'negative_prompt'
  | 'num_inference_steps'
  | 'guidance_scale'
  | 'num_frames'
  | 'fps'
  | 'strength'
  | 'output_path'

/** Describes a model that synthesizes speech. Plain data. */
export interface SpeechTraits {
  /** Formats that its engine writes; infer converts the engine's WAV to the others. */
  formats: readonly SpeechFormat[]
  /** Null if they are not known: then the engine decides whether a voice exists. */
  voices: readonly string[] | null
  /** Further names of voices, each with its voice. */
  aliases: Readonly<Record<string, string>>
  /** Maximum characters of one text. */
  longestInput: number
  /** The engine's fields for the recording of a voice to clone and its words, if they have other names than ours. */
  reference?: { audio: string; text: string }
}

/** Names the protocol between infer and an engine. The protocols are in core/tasks/protocols. */
export type EngineProtocolName =
  | 'openai-text'
  | 'openai-audio'
  | 'piper'
  | 'openai-images'
  | 'openai-videos'
  | 'sd-server'
  | 'comfyui'
  | 'infer-generation'

/** The path at which an engine serves an operation, and its protocol. */
export interface EngineRoute {
  protocol: EngineProtocolName
  path: string
  /** Input images guide an editing model. Default: the output starts from the input image. */
  images?: 'reference'
  /** The graph that the engine runs, for the protocol comfyui: its file, and how requests are written into it. */
  graph?: { file: string; settings: ComfyuiSettings }
  /** Fields of `openai-images` and `openai-videos` that the engine takes in addition to those of OpenAI. */
  fields?: readonly EngineField[]
  /**
   * What deleting an unfinished video does to the work, for `openai-videos`: it stops soon, or continues unseen. Default:
   * not known, so the slot is free at once.
   */
  deletion?: 'stops' | 'continues'
}

/** The abilities of one kind of engine. Plain data, which core/tasks uses. */
export interface EngineTraits {
  /** The engine does not support an operation without a route. */
  routes: Partial<Record<Operation, EngineRoute>>
  features: ReadonlySet<Feature>
  /** Whether relevance scores come as probabilities or as raw logits. */
  rerankScores: 'probability' | 'logit'
  /** The field of a rerank request that has the documents. Default: `documents`. */
  rerankField?: 'texts'
  /** How pair scores are computed: by the engine's score route, its rerank route, or cosines of its embeddings. */
  scoreBy: 'score' | 'rerank' | 'embeddings'
  /** Whether the engine saves conversations; it must be told which requests must not be stored. */
  savesConversations?: boolean
  /** Whether the engine itself supports `dimensions` and `encoding_format: base64`. */
  dimensions: boolean
  base64: boolean
  /**
   * How a stream reports its token usage: not at all, at its end (`stream_options.include_usage`), in every event
   * (`continuous_usage_stats`), or at its end with the prompt tokens before its first token (`return_progress`).
   */
  streamUsage: 'none' | 'end' | 'continuous' | 'progress'
  /** Whether `tool_choice` may name a tool. Otherwise the engine gets that tool alone, and `required`. */
  namedTool: boolean
  /** `schema`: `json_object` is sent as a JSON schema, because the engine would accept any JSON value. Default: by its name. */
  jsonObject?: 'schema'
  /** Whether a completion can have several prompts, also when it is streamed. */
  promptLists: boolean
  /** Whether a translation is a transcription with the field `translate`; other engines have a route for it. */
  translateField?: boolean
  /** Whether the engine takes `vad_filter`, which leaves out parts of audio without speech. */
  vadFilter?: boolean
  /** Whether the engine is a server elsewhere, so that the region of this machine is not its region. */
  isElsewhere?: true
  /** How many input images one edit may have. Default: 1. */
  inputImages?: number
  /** Only of models that synthesize speech. */
  speech?: SpeechTraits
  /** Name of the model in requests to the engine; that of an adapter in the entries of its names. */
  upstreamId: string
  /** Text before the name of an adapter in requests to the engine. Default: none. */
  adapterPrefix?: string
}

/** Returns what the engine of a model can do. Throws Failure for a model that is invalid. */
export type ModelCheck = (model: Model) => Pick<EngineTraits, 'features'>

/** An enabled model as the checks of requests need it. Plain data, so that it can be sent to a thread. */
export interface ModelSetEntry {
  /** The name by which requests choose it: the id of the model, an alias, or the name of a profile. */
  id: string
  /** What this name is, and the id of the model; absent if it is the id. */
  named?: { kind: Exclude<ModelName['kind'], 'id'>; modelId: string; adapterId?: string }
  /** The defaults of requests under this name; absent if they are those of the engine. */
  profile?: Profile | undefined
  engine: string
  tasks: readonly Task[]
  extraParams: readonly string[]
  /** The label of the region in which its engines run; absent if there is none. */
  region?: RegionLabel | undefined
  traits: EngineTraits
  /** Texts before the inputs of embeddings; absent if the model has none. */
  embeddingPrefixes?: Model['embedding_prefixes']
  /** The most tokens of a request and its answer together; null or absent if unknown. */
  contextLength?: number | null
}
/** The enabled models by each of their names. */
export type ModelSet = ReadonlyMap<string, ModelSetEntry>
