import { describe, expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { type AvailableMemory, type Sizing, type SizingSettings, sizing } from '../../../../gpu/engines/gguf/sizing.ts'
import { type MemoryLayout, type ModelShape, needOf } from '../../../../gpu/engines/gguf/sizing-need.ts'

const [MiB, GiB] = [2 ** 20, 2 ** 30]

/** Blocks that keep so many numbers of keys, and as many of values. */
const cached = (blocks: number, keys: number) =>
  Array.from({ length: blocks }, () => ({ window: null, keys, values: keys, state: 0 }))

/** A model of 16-bit weights unless bytes are given, in the shape of Llama 3.1 8B. */
function shape(
  of: Partial<ModelShape> & { heads?: number; kv?: number; blocks?: number; gigabytes?: number } = {},
): ModelShape {
  const { heads = 32, kv = 8, blocks = 32, gigabytes = 4.9, ...more } = of
  const bytes = gigabytes * 1e9
  const outputBytes = bytes * 0.06
  return {
    architecture: 'llama',
    contextLength: 131_072,
    embeddingLength: 4096,
    feedForwardLength: 14_336,
    blockCount: blocks,
    headCount: heads,
    blockMemory: cached(blocks, kv * 128),
    keyLength: 128,
    valueLength: 128,
    vocabularySize: 128_256,
    expertUsedCount: null,
    expertFeedForwardLength: null,
    causal: true,
    classifier: false,
    codes: false,
    tensorBytes: bytes,
    blockBytes: Array.from({ length: blocks }, () => (bytes * 0.88) / blocks),
    outputBytes,
    ...more,
  }
}

const eight = shape()
const mha = shape({ kv: 32, feedForwardLength: 11_008, vocabularySize: 32_000, gigabytes: 4.1, contextLength: 4096 })
const seventy = shape({ blocks: 80, gigabytes: 42, embeddingLength: 8192, feedForwardLength: 28_672 })
const experts = shape({
  architecture: 'qwen3moe',
  blocks: 48,
  gigabytes: 18.5,
  kv: 4,
  embeddingLength: 2048,
  feedForwardLength: 6144,
  expertUsedCount: 8,
  expertFeedForwardLength: 768,
  vocabularySize: 151_936,
})
const encoder = shape({
  architecture: 'bert',
  causal: false,
  blocks: 12,
  heads: 12,
  kv: 12,
  contextLength: 512,
  embeddingLength: 384,
  feedForwardLength: 1536,
  gigabytes: 0.13,
})

const card = (gigabytes: number, cpu = 32): AvailableMemory => ({ gpu: gigabytes * GiB, cards: 1, cpu: cpu * GiB })
const processor = (gigabytes: number): AvailableMemory => ({ gpu: 0, cards: 0, cpu: gigabytes * GiB })
const chat = (settings: Partial<SizingSettings> = {}): SizingSettings => ({
  tasks: ['std/chat-completion'],
  ...settings,
})

describe('the chosen settings', () => {
  const cases: [name: string, ModelShape, AvailableMemory, SizingSettings, Partial<Sizing>][] = [
    [
      '8B Q4 on an 8 GB GPU: all of it, one request with as much context as there is',
      eight,
      card(7.2),
      chat(),
      { gpuLayers: 33, context: 16_384, parallel: 1 },
    ],
    [
      '8B Q4 on 24 GB: the context that people need, for one request',
      eight,
      card(22),
      chat(),
      { gpuLayers: 33, context: 32_768, parallel: 1 },
    ],
    [
      '8B Q4 on 24 GB that no other model needs: for several',
      eight,
      { ...card(22), whole: Number.POSITIVE_INFINITY },
      chat(),
      { gpuLayers: 33, context: 32_768, parallel: 4 },
    ],
    [
      '8B Q4 on 24 GB with a configured number of requests: a shorter context',
      eight,
      card(22),
      chat({ parallel: 4 }),
      { gpuLayers: 33, context: 8192, parallel: 4 },
    ],
    [
      'a coder on 24 GB: twice the context',
      { ...eight, codes: true },
      card(22),
      chat(),
      { gpuLayers: 33, context: 65_536, parallel: 1 },
    ],
    [
      'a coder on 16 GB, where that would take more than half: as for others',
      { ...eight, codes: true },
      card(15),
      chat(),
      { gpuLayers: 33, context: 32_768, parallel: 1 },
    ],
    [
      '8B Q4 on 80 GB: the longest default context',
      eight,
      card(76),
      chat(),
      { gpuLayers: 33, context: 32_768, parallel: 4 },
    ],
    [
      '8B Q4 on 80 GB with a long configured context',
      eight,
      card(76),
      chat({ context: 131_072, parallel: 4 }),
      { gpuLayers: 33, context: 131_072, parallel: 4 },
    ],
    [
      '7B without grouped heads: its cache is four times as large',
      mha,
      card(7.2),
      chat(),
      { gpuLayers: 33, context: 4096, parallel: 1 },
    ],
    ['70B Q4 on 24 GB: some layers', seventy, card(22, 64), chat({ parallel: 1 }), { gpuLayers: 43, context: 4096 }],
    [
      '70B Q4 on two GPUs',
      seventy,
      { gpu: 46 * GiB, cards: 2, cpu: 8 * GiB },
      chat({ parallel: 1 }),
      { gpuLayers: 81, context: 16_384 },
    ],
    ['30B with experts on 24 GB', experts, card(22), chat(), { gpuLayers: 49, context: 32_768, parallel: 1 }],
    ['experts on 12 GB: the rest in system memory', experts, card(11), chat({ parallel: 1 }), { gpuLayers: 29 }],
    ['configured layers', eight, card(22), chat({ gpuLayers: 10 }), { gpuLayers: 10 }],
    ['more layers than the model has means all', eight, card(22), chat({ gpuLayers: 999 }), { gpuLayers: 33 }],
    ['configured to no layers', eight, card(22), chat({ gpuLayers: 0 }), { gpuLayers: 0 }],
    ['layers have no effect without a GPU', eight, processor(16), chat({ gpuLayers: 33 }), { gpuLayers: 0 }],
    ['a CPU with much memory', eight, processor(32), chat(), { gpuLayers: 0, context: 32_768, parallel: 2 }],
    [
      'a CPU with little memory: fewer slots, shorter context',
      eight,
      processor(5.2),
      chat(),
      { context: 2048, parallel: 1 },
    ],
    [
      'a smaller cache type allows a longer context',
      eight,
      card(7.2),
      chat({ kvType: 'q4_0' }),
      { context: 32_768, parallel: 1, kvType: 'q4_0' },
    ],
    ['never longer than the training context', mha, card(76), chat({ context: 32_768 }), { context: 4096 }],
    [
      '8B Q4 on an 8 GB GPU with a long configured context: fewer layers, not a shorter context',
      eight,
      card(7.5, 64),
      chat({ context: 32_768, parallel: 1 }),
      { gpuLayers: 28, context: 32_768, parallel: 1 },
    ],
    ['256 slots', eight, card(76), chat({ parallel: 256, context: 512 }), { context: 512, parallel: 256 }],
    [
      'an encoder uses its training context',
      encoder,
      processor(1),
      { tasks: ['std/embeddings'] },
      { encoderContext: 512 },
    ],
    ['an encoder on a GPU', encoder, card(7), { tasks: ['std/rerank'] }, { gpuLayers: 13, encoderContext: 512 }],
    [
      'a chat model that also makes embeddings',
      eight,
      card(22),
      { tasks: ['std/chat-completion', 'std/embeddings'] },
      { context: 32_768, encoderContext: 2048 },
    ],
  ]
  test.each(cases)('%s', (_, model, memory, settings, wanted) => {
    const chosen = sizing(model, memory, settings)
    expect({ ...wanted, why: chosen.why }).toEqual({ ...pick(chosen, Object.keys(wanted)), why: chosen.why })
    expect(chosen.need.gpu).toBeLessThanOrEqual(memory.gpu)
    expect(chosen.need.cpu).toBeLessThanOrEqual(memory.cpu)
  })

  test.each(cases)('%s; and the same with exactly the memory that it needs', (_, model, memory, settings) => {
    const chosen = sizing(model, memory, settings)
    const booked = { gpu: chosen.need.gpu, cards: memory.cards, cpu: memory.cpu, whole: Number.POSITIVE_INFINITY }
    if (memory.gpu === 0) booked.cpu = chosen.need.cpu
    const { parallel } = chosen
    expect(pick(sizing(model, booked, { ...settings, parallel }), ['gpuLayers', 'context', 'parallel'])).toEqual(
      pick(chosen, ['gpuLayers', 'context', 'parallel']),
    )
  })
})

const pick = (from: Sizing, keys: readonly string[]) =>
  Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key)))

describe('settings that do not fit', () => {
  const refused = (...of: Parameters<typeof sizing>): string => {
    try {
      return `it fits: ${sizing(...of).why}`
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(Failure)
      expect((thrown as Failure).code).toBe('invalid_value')
      return (thrown as Failure).message
    }
  }

  test.each<[name: string, ModelShape, AvailableMemory, SizingSettings, RegExp[]]>([
    [
      'a context that is too long: the message says what would fit',
      eight,
      processor(16),
      chat({ context: 131_072, parallel: 4 }),
      [
        /needs 69\.0 GiB of main memory, of which 16\.0 GiB can be had/,
        /64\.0 GiB for 4 × 131072 tokens/,
        /context_length: 22\d\d\d/,
      ],
    ],
    ['fewer slots would fit', eight, processor(24), chat({ context: 65_536, parallel: 4 }), [/concurrency: 2/]],
    ['a smaller cache type would fit', eight, processor(12), chat({ context: 65_536, parallel: 1 }), [/kv_type: q8_0/]],
    ['weights that are too large', seventy, processor(16), chat(), [/39\.\d GiB of weights/, /a smaller model/]],
    [
      'too many layers',
      seventy,
      card(22, 64),
      chat({ gpuLayers: 60, parallel: 1 }),
      [/60 layers need/, /gpu_layers: 4\d/],
    ],
    ['neither GPU nor CPU has enough', seventy, card(8, 16), chat(), [/no split with 8\.0 GiB of the GPU/]],
  ])('%s', (_, model, memory, settings, says) => {
    const message = refused(model, memory, settings)
    for (const one of says) expect(message).toMatch(one)
  })

  test('the suggested settings fit', () => {
    const settings = chat({ context: 131_072, parallel: 4 })
    const message = refused(eight, processor(16), settings)
    const context = Number(/context_length: (\d+)/.exec(message)![1])
    expect(sizing(eight, processor(16), { ...settings, context }).context).toBe(context)
    expect(() => sizing(eight, processor(16), { ...settings, context: context + 256 })).toThrow(Failure)
  })

  test('a quantized cache without flash attention is refused', () => {
    expect(refused(eight, card(22), chat({ kvType: 'q8_0', flashAttention: 'off' }))).toMatch(/needs flash attention/)
    const narrow = shape({ keyLength: 80, valueLength: 80 })
    expect(refused(narrow, card(22), chat({ kvType: 'q4_0' }))).toMatch(/blocks of 32, and the heads .* have 80/)
  })
})

/**
 * Sizes that llama.cpp v0.5.0 reported on a CPU for files of these shapes with two blocks of 16-bit weights:
 * the cache alone, and the cache with buffers. All in MiB.
 */
describe('compared with llama.cpp', () => {
  const two = { blocks: 2, gigabytes: 1, contextLength: 131_072 }
  const dense = shape({ ...two, kv: 32, feedForwardLength: 11_008, vocabularySize: 32_000 })
  const grouped = shape(two)
  const thirty = { ...experts, blockCount: 2, blockMemory: cached(2, 512) }
  const window = shape({
    ...two,
    blocks: 12,
    architecture: 'gemma3',
    heads: 8,
    keyLength: 256,
    valueLength: 256,
    embeddingLength: 2048,
    feedForwardLength: 4096,
    vocabularySize: 300,
    blockMemory: cached(12, 1024).map((block, at) => ({ ...block, window: at % 6 === 5 ? null : 1024 })),
  })
  const layout = (of: Partial<MemoryLayout> & { tokens: number; sequences: number; batch?: number }): MemoryLayout => ({
    gpuLayers: 0,
    kvType: 'f16',
    flash: true,
    cards: 0,
    contexts: [{ batch: 512, spare: 1, ...of }],
    ...of,
  })
  test.each<[name: string, ModelShape, MemoryLayout, cache: number, all: number]>([
    ['dense', dense, layout({ tokens: 4096, sequences: 4 }), 512, 612.5],
    ['dense, small batch', dense, layout({ tokens: 4096, sequences: 4, batch: 128 }), 512, 537.1],
    ['dense, long', dense, layout({ tokens: 32_768, sequences: 1 }), 1024, 1152.5],
    ['dense, no flash attention', dense, layout({ tokens: 32_768, sequences: 1, flash: false }), 1024, 3192],
    ['dense, q8_0', dense, layout({ tokens: 4096, sequences: 4, kvType: 'q8_0' }), 272, 372.6],
    ['dense, q4_0', dense, layout({ tokens: 4096, sequences: 4, kvType: 'q4_0' }), 144, 244.6],
    ['grouped heads', grouped, layout({ tokens: 4096, sequences: 4 }), 128, 394.5],
    ['every sequence has its own cells', grouped, layout({ tokens: 1000, sequences: 4 }), 32, 298.5],
    ['experts', thirty, layout({ tokens: 4096, sequences: 4 }), 64, 368.8],
    ['a sliding window', window, layout({ tokens: 4096, sequences: 4 }), 408, 450.1],
    ['a sliding window, long', window, layout({ tokens: 32_768, sequences: 4 }), 1304, 1374.3],
    ['experts', thirty, layout({ tokens: 32_768, sequences: 1, batch: 512 }), 128, 432.8],
  ])('%s', (_, model, wanted, cache, all) => {
    const need = needOf(model, wanted)
    expect(need.cache / MiB).toBeCloseTo(cache, 1)
    expect((need.cache + need.buffers) / MiB).toBeGreaterThan(all * 0.98)
    expect((need.cache + need.buffers) / MiB).toBeLessThan(all * 1.06 + 8)
  })

  /** The values that it reported on a Vulkan device for eight small blocks, model and context together. */
  const small = shape({
    blocks: 8,
    heads: 8,
    kv: 2,
    contextLength: 131_072,
    embeddingLength: 1024,
    feedForwardLength: 3072,
    vocabularySize: 32_000,
    tensorBytes: 309.1 * MiB,
    blockBytes: Array.from({ length: 8 }, () => 23 * MiB),
    outputBytes: 62.5 * MiB,
  })
  test.each([
    [9, 329.1, 68.5],
    [4, 204, 256],
    [1, 141, 331.1],
    [0, 0, 391.6],
  ])('%d layers on the GPU', (gpuLayers, gpu, cpu) => {
    const need = needOf(small, layout({ tokens: 2048, sequences: 1, gpuLayers, cards: 1 }))
    expect(need.gpu / MiB).toBeGreaterThanOrEqual(gpu * 0.99)
    expect(need.gpu / MiB).toBeLessThan(gpu * 1.15 + 1)
    expect(need.cpu / MiB).toBeGreaterThanOrEqual(cpu * 0.99)
    // CPU buffers are counted for all blocks, on whichever device they are.
    expect(need.cpu / MiB).toBeLessThan(cpu * 1.05 + 64)
  })
})
