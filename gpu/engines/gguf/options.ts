import { invalid } from '../../../core/failure.ts'
import type { TextTask } from '../../../core/schemas/task.ts'
import { checkListenAddress, type EngineSettings } from '../http.ts'
import type { SizingSettings } from './sizing.ts'

/** A backend by name, `auto` for the best that works here, `off` for the CPU. */
export const gpuUses = ['auto', 'off', 'cuda', 'vulkan'] as const
export type GpuUse = (typeof gpuUses)[number]

/** A LoRA adapter: its name in requests, and how strongly it applies. */
export interface AdapterFile {
  name: string
  scale: number
  path: string
}

/** Settings of the memory layout are chosen by the available memory if they are omitted. */
export interface GgufEngineSettings extends EngineSettings, SizingSettings {
  /** Path of the GGUF file, or of the first part of a split model. */
  model: string
  tasks: readonly TextTask[]
  threads: number
  gpu: GpuUse
  /** Folder of the GPU builds; the builds inside the program use the CPU. */
  backends?: string
  /** Bytes that the model may use, on the GPU if there is one; default: the free memory. */
  memory?: number
  /** Whether to map the file into memory instead of reading it; default: map. */
  mmap?: boolean
  /** Locks the model in memory, so that it is not swapped out. */
  mlock?: boolean
  /** Most tokens that are guessed at once from what the text has repeated; omitted: none are. */
  guess?: number
  /** LoRA adapters that requests name as their model. */
  adapters?: readonly AdapterFile[]
  /** Folder in which conversations are saved, one folder for each of their owners; omitted: none are. */
  conversations?: string
}

/** Settings after defaults were chosen from the model's header and the available memory. */
export interface GgufEngineOptions extends GgufEngineSettings {
  parallel: number
}

/** llama.cpp's limit of sequences per context. */
export const maxParallel = 256

/** Most tokens that may be guessed at once: later ones are hardly ever right. */
export const maxGuess = 64

/** Throws Failure `invalid_value` for invalid options. */
export function checkOptions(options: GgufEngineSettings): void {
  const within = (name: string, value: number | undefined, min: number, max: number) => {
    if (value !== undefined && !(Number.isInteger(value) && value >= min && value <= max))
      throw invalid(name, `--${name} must be a whole number from ${min} to ${max}, not ${value}.`)
  }
  if (options.tasks.length === 0) throw invalid('task', 'Give at least one task with --task.')
  checkListenAddress(options)
  within('threads', options.threads, 1, 1024)
  within('parallel', options.parallel, 1, maxParallel)
  within('context', options.context, 16, 2 ** 24)
  within('gpu-layers', options.gpuLayers, 0, 4096)
  within('batch', options.batch, 32, 4096)
  within('guess', options.guess, 1, maxGuess)
}
