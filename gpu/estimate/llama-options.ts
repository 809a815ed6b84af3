import type { Model } from '../../core/models/model.ts'
import type { KvType } from '../engines/gguf/sizing-need.ts'

/** The options of llama-server that decide its memory, as a model's `args` and `env` give them. */
export interface LlamaOptions {
  /** Layers on the GPU, the output counted as one. */
  gpuLayers?: number
  /** Tokens of all requests together; 0 is the context of the training. */
  context?: number
  parallel?: number
  /** Tokens of one batch, and of its part that is computed at once. */
  batch?: number
  microBatch?: number
  flash?: 'on' | 'off'
  kvType?: KvType
  tensorSplit?: string
  splitMode?: string
  /** Whether some tensors stay in main memory, whichever layer they belong to. */
  keepsTensors: boolean
  /** The image encoder, if it is computed on the device of the model. */
  projector?: string
  /** Adapters and other models that it loads besides. */
  further: string[]
}

/** Bytes are counted for three types; others count as the next larger one. */
const kvTypeOf = (name: string): KvType => (name === 'q4_0' ? 'q4_0' : /^(q|iq)/.test(name) ? 'q8_0' : 'f16')
const kvOrder: readonly KvType[] = ['q4_0', 'q8_0', 'f16']

/** Reads the options; the last of several counts, and arguments win over the environment, as in llama.cpp v0.5.0. */
export function llamaOptions({ args = [], env = {} }: Partial<Pick<Model, 'args' | 'env'>>): LlamaOptions {
  const words = args.flatMap(arg =>
    /^--?[a-z-]+=/.test(arg) ? [arg.slice(0, arg.indexOf('=')), arg.slice(arg.indexOf('=') + 1)] : [arg],
  )
  const all = (...names: string[]) => words.flatMap((word, at) => (names.includes(word) ? [words[at + 1] ?? ''] : []))
  const last = (...names: string[]) => all(...names).at(-1)
  const number = (text: string | undefined): number | undefined =>
    text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
  const flash = last('-fa', '--flash-attn')
  const cache = all('-ctk', '--cache-type-k', '-ctv', '--cache-type-v').map(kvTypeOf)
  const has = (...names: string[]) => names.some(name => words.includes(name))
  const layers = last('-ngl', '--gpu-layers', '--n-gpu-layers') ?? env.LLAMA_ARG_N_GPU_LAYERS
  const projector = last('-mm', '--mmproj')
  return {
    ...defined({
      gpuLayers: layers === 'all' ? 9999 : number(layers),
      context: number(last('-c', '--ctx-size') ?? env.LLAMA_ARG_CTX_SIZE),
      parallel: number(last('-np', '--parallel')),
      batch: number(last('-b', '--batch-size')),
      microBatch: number(last('-ub', '--ubatch-size')),
      flash: flash === 'off' || flash === '0' ? 'off' : flash === undefined || flash === 'auto' ? undefined : 'on',
      kvType:
        cache.length === 0
          ? undefined
          : cache.length === 1
            ? 'f16'
            : kvOrder[Math.max(...cache.map(type => kvOrder.indexOf(type)))],
      tensorSplit: last('-ts', '--tensor-split'),
      splitMode: last('-sm', '--split-mode'),
      projector: has('--no-mmproj-offload', '--no-mmproj') ? undefined : projector,
    }),
    keepsTensors: has('-ot', '--override-tensor', '-cmoe', '--cpu-moe', '-ncmoe', '--n-cpu-moe'),
    // A scale may follow the path of an adapter after a colon, and several are divided by commas.
    further: all('--lora', '--lora-scaled', '-md', '--model-draft', '--spec-draft-model').flatMap(text =>
      text.split(',').map(one => one.replace(/:-?[\d.]+$/, '')),
    ),
  }
}

const defined = <T extends object>(fields: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
