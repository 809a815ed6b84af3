import { Failure } from '../../../core/failure.ts'
import type { TextTask } from '../../../core/schemas/task.ts'
import { checkListenAddress, type ListenAddress } from '../http.ts'
import type { KvType } from './sizing-need.ts'

/** What computes: a backend by name, the best that works here, or the processor. */
export const gpuUses = ['auto', 'off', 'cuda', 'vulkan'] as const
export type GpuUse = (typeof gpuUses)[number]

export const flashUses = ['auto', 'on', 'off'] as const

/** What `infer engine gguf` is told. */
export interface GgufEngineSettings extends ListenAddress {
  /** Path of the GGUF file; of a split model the first part. */
  model: string
  /** The name under which it answers. */
  id: string
  tasks: readonly TextTask[]
  threads: number
  /** Chats that are worked on at once, 1 to 256; by the memory at hand when left out. */
  parallel?: number
  /** Tokens that one request may take, prompt and answer together. At most what the model was trained for. */
  context?: number
  gpu: GpuUse
  /** Where the builds for GPUs lie; those inside the program compute on the processor. */
  backends?: string
  /** Blocks of the model on the GPU, its output counted as one more; as many as fit when left out. */
  gpuLayers?: number
  flashAttention?: (typeof flashUses)[number]
  kvType?: KvType
  /** Tokens that are computed at once, 32 to 4096. */
  batch?: number
  /** Bytes that the model may fill, on the GPU where there is one; as much as is free when left out. */
  memory?: number
  /** Whether the file is mapped into memory rather than read; mapped by itself. */
  mmap?: boolean
  /** Keeps the model from being swapped out. */
  mlock?: boolean
  /** When given, every request but /health needs it as bearer token. */
  key?: string
}

/** The same once the model's header and the memory at hand have decided what was left out. */
export interface GgufEngineOptions extends GgufEngineSettings {
  parallel: number
}

/** llama.cpp refuses to make a context for more sequences than this. */
export const maxParallel = 256

/** Throws Failure `invalid_value` for options that cannot work, before anything is started. */
export function checkOptions(options: GgufEngineSettings): void {
  const wrong = (param: string, message: string) => new Failure('invalid_value', message, { param })
  const within = (name: string, value: number | undefined, least: number, most: number) => {
    if (value !== undefined && !(Number.isInteger(value) && value >= least && value <= most))
      throw wrong(name, `--${name} must be a whole number from ${least} to ${most}, not ${value}.`)
  }
  if (options.tasks.length === 0) throw wrong('task', 'Say with --task what the model is for.')
  checkListenAddress(options)
  within('threads', options.threads, 1, 1024)
  within('parallel', options.parallel, 1, maxParallel)
  within('context', options.context, 16, 2 ** 24)
  within('gpu-layers', options.gpuLayers, 0, 4096)
  within('batch', options.batch, 32, 4096)
}
