import type { Task } from '../../schemas/task.ts'
import type { CompanionFile, FamilyDefaults } from './diffusion-families.ts'
import type { TransformersShape } from './transformers-shape.ts'

/** Engines that infer can suggest, by the name that `engine:` in infer.yaml uses. */
export const suggestedEngines = [
  'gguf',
  'llama-server',
  'vllm',
  'sglang',
  'tei',
  'infinity',
  'whisper-server',
  'sd-server',
  'python',
  'sglang-diffusion',
  'vllm-omni',
  'comfyui',
  'speaches',
  'kokoro-fastapi',
  'piper',
] as const
export type SuggestedEngine = (typeof suggestedEngines)[number]

/** What a model is, and how infer can run it. */
export interface Recognition {
  /** What it is, for the user: `FLUX.1, a diffusers pipeline (FluxPipeline)`. */
  is: string
  tasks: readonly Task[]
  /** Why it has these tasks, as the end of a sentence. */
  because: string
  /** Engines that can run it, best first. */
  engines: readonly SuggestedEngine[]
  /** The tasks on an engine that does fewer of them. */
  tasksOn?: Partial<Record<SuggestedEngine, readonly Task[]>>
  /** What requests of an image or video model get if they name nothing else. */
  defaults?: FamilyDefaults
  /** Files that sd-server needs besides this one. */
  companions?: readonly CompanionFile[]
  /** Whether sd-server must load the file as the diffusion model only. */
  isDiffusionOnly?: boolean
  /** How many images an edit takes. */
  inputImages?: number
  /** The file that the engine loads, if it is not the whole folder. */
  file?: string
  /** Tokens that a text model was trained for; null if its configuration does not tell. */
  contextLength?: number | null
  /** What decides the memory of a model of transformers, by its configuration. */
  shape?: TransformersShape | undefined
  /** Whether the name of its folder or file is too general for an id, so that `id` is better. */
  id?: string
}

/** The engine for a model. */
export interface EngineChoice<Name extends string> {
  engine: Name
  isInstalled: boolean
}

/**
 * Chooses the engine of a model from those that can run it, best first: the first that is installed and that this
 * machine can run, else the first installed one, else the first that this machine can run, else the best.
 * Undefined if infer has none of them.
 */
export function chooseEngine<Name extends SuggestedEngine>(
  candidates: readonly Name[],
  options: {
    /** Whether infer has the engine. */
    isKnown: (engine: Name) => boolean
    isInstalled: (engine: Name) => boolean
    /** False for an engine that needs a GPU, on a machine without one. */
    runsHere: (engine: Name) => boolean
  },
): EngineChoice<Name> | undefined {
  const { isKnown, isInstalled, runsHere } = options
  const known = candidates.filter(isKnown)
  const installed = known.filter(isInstalled)
  const engine = installed.find(runsHere) ?? installed[0] ?? known.find(runsHere) ?? known[0]
  return engine === undefined ? undefined : { engine, isInstalled: installed.includes(engine) }
}
