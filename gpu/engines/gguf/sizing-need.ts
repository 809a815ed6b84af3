import type { GgufHeader } from '../../../core/models/gguf-header.ts'
import type { LayerBytes } from './card-split.ts'

export type ModelShape = Pick<
  GgufHeader,
  | 'architecture'
  | 'contextLength'
  | 'embeddingLength'
  | 'feedForwardLength'
  | 'blockCount'
  | 'headCount'
  | 'blockMemory'
  | 'keyLength'
  | 'valueLength'
  | 'vocabularySize'
  | 'expertUsedCount'
  | 'expertFeedForwardLength'
  | 'causal'
  | 'classifier'
  | 'codes'
  | 'tensorBytes'
  | 'blockBytes'
  | 'outputBytes'
>

/** Number formats of the key-value cache. All but f16 require flash attention. */
export const kvTypes = ['f16', 'q8_0', 'q4_0'] as const
export type KvType = (typeof kvTypes)[number]

/** Bytes of one number; the quantised ones are blocks of 32 with a 16-bit scale. */
const kvBytes: Record<KvType, number> = { f16: 2, q8_0: 34 / 32, q4_0: 18 / 32 }

/** One context of llama.cpp: every sequence has its own `tokens` and shares none. */
export interface ContextShape {
  tokens: number
  sequences: number
  /** Tokens per batch. */
  batch: number
  /** Tokens that sliding windows keep beyond window and batch: 1 with node-llama-cpp. By default 0. */
  spare?: number
}

export interface MemoryLayout {
  /** Layers on the GPU, counted from the end: 1 is the output, 2 also the last block, and so on. */
  gpuLayers: number
  contexts: readonly ContextShape[]
  kvType: KvType
  flash: boolean
  cards: number
}

/** llama.cpp and node-llama-cpp allocate cache cells in units of 256 tokens. */
const padded = (tokens: number): number => Math.ceil(tokens / 256) * 256

/**
 * Computes the memory of a layout. Compared with the sizes that llama.cpp v0.5.0 reports for models of real shapes
 * (dense, grouped heads, experts, sliding window): the cache is exact, the buffers are exact or up to a fifth too
 * large.
 */
export function needOf(shape: ModelShape, { gpuLayers, contexts, kvType, flash, cards }: MemoryLayout) {
  const { blockCount, blockBytes, tensorBytes } = shape
  const onGpu = (block: number) => block > blockCount - gpuLayers
  const outputOnGpu = gpuLayers > 0
  const whole = gpuLayers > blockCount
  const rest = tensorBytes - sum(blockBytes)
  // Embeddings stay in main memory; tied embeddings are stored a second time as output.
  const embeddings = rest - shape.outputBytes < shape.outputBytes / 2 ? rest : rest - shape.outputBytes
  const gpu = { weights: outputOnGpu ? shape.outputBytes : 0, cache: 0, buffers: 0 }
  const cpu = { weights: outputOnGpu ? embeddings : rest, cache: 0, buffers: 0 }
  const blocks = [...blockBytes]
  for (const [block, bytes] of blockBytes.entries()) (onGpu(block) ? gpu : cpu).weights += bytes
  let each = 0
  for (const context of contexts) {
    const caches = cachesOf(shape, context, kvType, flash)
    for (const [block, bytes] of caches.entries()) {
      ;(onGpu(block) ? gpu : cpu).cache += bytes
      blocks[block] = (blocks[block] ?? 0) + bytes
    }
    const buffers = buffersOf(shape, context, flash)
    // A long prompt is computed on the GPU for all blocks: blocks in main memory are copied there one by one.
    const brought = Math.max(0, ...blockBytes, ...caches)
    const inputs = context.batch * (cellsOf(context) * 2 + width(shape) * 8)
    if (gpuLayers > 0) each += buffers + (whole ? 0 : brought)
    cpu.buffers += whole ? inputs : buffers
    // The logits of one token per sequence; sampling runs on the CPU.
    cpu.buffers += context.sequences * (shape.vocabularySize ?? 0) * 4
  }
  gpu.buffers = each * cards
  const total = (of: typeof gpu) => Math.ceil(of.weights + of.cache + of.buffers)
  return {
    /** Bytes on all GPUs together and in main memory, without the process itself. */
    gpu: total(gpu),
    cpu: total(cpu),
    weights: tensorBytes,
    cache: gpu.cache + cpu.cache,
    buffers: gpu.buffers + cpu.buffers,
    /** What is on the GPUs, as it is divided among several. */
    onCards: {
      each,
      layers: outputOnGpu ? [...blocks.filter((_, block) => onGpu(block)), shape.outputBytes] : [],
    } satisfies LayerBytes,
  }
}

export type Need = ReturnType<typeof needOf>

/**
 * Returns the bytes of each block's cache and state for all sequences of a context. Encoders keep nothing. Without flash
 * attention the values of every block are as long as the longest.
 */
function cachesOf(
  { causal, blockMemory }: ModelShape,
  context: ContextShape,
  kvType: KvType,
  flash: boolean,
): number[] {
  if (!causal) return []
  const longest = flash ? 0 : Math.max(0, ...blockMemory.map(({ values }) => values))
  return blockMemory.map(({ window, keys, values, state }) => {
    const kept = window === null ? context.tokens : window + context.batch + (context.spare ?? 0)
    const cells = Math.min(cellsOf(context), padded(kept))
    const numbers = keys + (values > 0 ? Math.max(values, longest) : 0)
    return (numbers * kvBytes[kvType] * cells + state * 4) * context.sequences
  })
}

/**
 * Bytes of temporary buffers for one batch in one block or in the output, whichever is larger: 32-bit activations, the
 * attention mask, and without flash attention the scores of every head for every pair of tokens.
 */
function buffersOf(shape: ModelShape, context: ContextShape, flash: boolean): number {
  const embedding = width(shape)
  const used = shape.expertUsedCount ?? 0
  const hidden = used > 0 ? used * (shape.expertFeedForwardLength ?? shape.feedForwardLength ?? 0) : 0
  const block = Math.max(
    3 * Math.max(hidden, used > 0 ? 0 : (shape.feedForwardLength ?? 0)) + 4 * embedding,
    used > 0 ? (2 * used + 6) * embedding : 0,
  )
  const output = shape.causal ? (shape.vocabularySize ?? 0) + 2 * embedding : 0
  const scores = flash ? 0 : ((shape.headCount ?? 0) + 1) * cellsOf(context) + 7 * embedding
  return context.batch * (Math.max(block, output, scores) * 4 + cellsOf(context) * 2)
}

const cellsOf = (context: ContextShape): number => padded(context.tokens)
const width = (shape: ModelShape): number => shape.embeddingLength ?? 0
const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)
