import { describe, expect, test } from 'vitest'
import { transformersShape } from '../../../core/models/recognition/transformers-shape.ts'
import { type PagedShape, pagedPlan, pagedPlanOn } from '../../../gpu/estimate/paged-plan.ts'
import type { PlacementTarget } from '../../../gpu/estimate/target.ts'
import { llama8b } from '../_llama-8b.ts'

const GiB = 2 ** 30
/** What may be booked of a card with so many GiB. */
const card = (gib: number, devices = 1): PlacementTarget => ({
  kind: 'gpu',
  devices,
  capacity: 0.97 * gib * GiB,
  slots: 256,
})

/** The fields that the published config.json files have, and the bytes of their weights. */
const made = (
  type: string,
  layers: number,
  hidden: number,
  intermediate: number,
  heads: number,
  kv: number,
  context: number,
  more: object = {},
) => ({
  model_type: type,
  num_hidden_layers: layers,
  hidden_size: hidden,
  intermediate_size: intermediate,
  num_attention_heads: heads,
  num_key_value_heads: kv,
  max_position_embeddings: context,
  vocab_size: 128_256,
  torch_dtype: 'bfloat16',
  ...more,
})
const scaled = { rope_scaling: { rope_type: 'llama3', factor: 8, original_max_position_embeddings: 8192 } }
const sees = (text_config: object) => ({ model_type: 'gemma3', text_config, vision_config: {} })
const gemma = (layers: number, hidden: number, more: object) => ({
  model_type: 'gemma3_text',
  num_hidden_layers: layers,
  hidden_size: hidden,
  intermediate_size: 4 * hidden,
  sliding_window: 1024,
  rope_scaling: { factor: 8, rope_type: 'linear' },
  ...more,
})

/** `cache`: bytes of each further token in a long context. On cards of 24, 80 and 2 × 80 GiB, of which engines use 0.95: tokens of one request, 0 if it does not fit. */
const models: [name: string, config: object, gigabytes: number, cache: number, fits: [number, number, number]][] = [
  ['Llama 3.1 8B', { ...llama8b, ...scaled }, 16.06, 131_072, [43_008, 131_072, 131_072]],
  ['Llama 3.3 70B', made('llama', 80, 8192, 28_672, 64, 8, 131_072, scaled), 141.1, 327_680, [0, 0, 51_200]],
  ['Llama 3.3 70B in FP8', made('llama', 80, 8192, 28_672, 64, 8, 131_072, scaled), 71, 327_680, [0, 21_504, 131_072]],
  [
    'Qwen2.5 7B',
    made('qwen2', 28, 3584, 18_944, 28, 4, 32_768, { sliding_window: 131_072, use_sliding_window: false }),
    15.2,
    57_344,
    [32_768, 32_768, 32_768],
  ],
  ['Qwen2.5 32B', made('qwen2', 64, 5120, 27_648, 40, 8, 32_768), 65.5, 262_144, [0, 32_768, 32_768]],
  [
    'Qwen3 0.6B',
    made('qwen3', 28, 1024, 3072, 16, 8, 40_960, { head_dim: 128 }),
    1.5,
    114_688,
    [40_960, 40_960, 40_960],
  ],
  [
    'Qwen3 4B 2507',
    made('qwen3', 36, 2560, 9728, 32, 8, 262_144, { head_dim: 128 }),
    8.05,
    147_456,
    [93_184, 262_144, 262_144],
  ],
  [
    'Qwen3 8B',
    made('qwen3', 36, 4096, 12_288, 32, 8, 40_960, { head_dim: 128 }),
    16.38,
    147_456,
    [36_864, 40_960, 40_960],
  ],
  [
    'Qwen3 30B A3B',
    made('qwen3_moe', 48, 2048, 6144, 32, 4, 40_960, {
      head_dim: 128,
      num_experts_per_tok: 8,
      moe_intermediate_size: 768,
    }),
    61.1,
    98_304,
    [0, 40_960, 40_960],
  ],
  [
    'Mistral 7B',
    made('mistral', 32, 4096, 14_336, 32, 8, 32_768, { sliding_window: null }),
    14.5,
    131_072,
    [32_768, 32_768, 32_768],
  ],
  [
    'Mistral Small 24B',
    made('mistral', 40, 5120, 32_768, 32, 8, 32_768, { head_dim: 128 }),
    47.2,
    163_840,
    [0, 32_768, 32_768],
  ],
  [
    'Gemma 3 12B',
    sees(gemma(48, 3840, { num_attention_heads: 16, num_key_value_heads: 8 })),
    24.4,
    65_536,
    [0, 131_072, 131_072],
  ],
  [
    'Gemma 3 27B',
    sees(gemma(62, 5376, { num_attention_heads: 32, num_key_value_heads: 16, head_dim: 128 })),
    54.9,
    81_920,
    [0, 131_072, 131_072],
  ],
  [
    'Phi 4',
    made('phi3', 40, 5120, 17_920, 40, 10, 16_384, { sliding_window: null }),
    29.3,
    204_800,
    [0, 16_384, 16_384],
  ],
  ['DeepSeek R1 Distill Llama 8B', { ...llama8b, ...scaled }, 16.06, 131_072, [43_008, 131_072, 131_072]],
  [
    'DeepSeek V2 Lite',
    made('deepseek_v2', 27, 2048, 10_944, 16, 16, 163_840, { kv_lora_rank: 512, qk_rope_head_dim: 64 }),
    31.4,
    31_104,
    [0, 163_840, 163_840],
  ],
  [
    'gpt-oss 20B',
    made('gpt_oss', 24, 2880, 2880, 64, 8, 131_072, {
      head_dim: 64,
      sliding_window: 128,
      layer_types: Array.from({ length: 24 }, (_, at) => (at % 2 ? 'full_attention' : 'sliding_attention')),
    }),
    13.8,
    24_576,
    [131_072, 131_072, 131_072],
  ],
  [
    'Qwen3-Next 80B',
    made('qwen3_next', 48, 2048, 5120, 16, 2, 262_144, {
      head_dim: 256,
      full_attention_interval: 4,
      linear_num_value_heads: 32,
      linear_key_head_dim: 128,
      linear_value_head_dim: 128,
    }),
    162.7,
    24_576,
    [0, 0, 0],
  ],
]

const shapeOf = (config: object, gigabytes: number): PagedShape => ({
  ...transformersShape(config)!,
  weights: gigabytes * 1e9,
})
const lengthOn = (shape: PagedShape, target: PlacementTarget): number => {
  const { bytes, fits, plan } = pagedPlan(shape, {}, target)
  if (fits) expect(bytes).toBeLessThanOrEqual(target.capacity * target.devices)
  return fits ? (plan.maxLength ?? shape.contextLength!) : 0
}

describe('models start with one request of full length, or with the longest that fits', () => {
  test.each(models)('%s', (_, config, gigabytes, cache, lengths) => {
    const shape = shapeOf(config, gigabytes)
    const need = (context_length: number) => pagedPlan(shape, { context_length }, card(4096)).bytes
    expect((need(131_072) - need(65_536)) / 65_536 / 1.02).toBeCloseTo(cache, -1)
    expect([card(24), card(80), card(80, 2)].map(target => lengthOn(shape, target))).toEqual(lengths)
  })
})

test.each([
  [64, 8, 2, { tensor: 4, pipeline: 2 }],
  [64, 12, 2, { tensor: 2, pipeline: 6 }],
  [40, 16, 2, { tensor: 8, pipeline: 2 }],
  [64, 8, 1, { tensor: 8, pipeline: 1 }],
])('%i heads on %i GPUs of %i nodes: a layer stays on one node', (heads, gpus, nodes, parallel) => {
  const shape = { ...shapeOf(models[0]![1], 10), heads }
  const cards = Array.from({ length: gpus }, () => 77 * 2 ** 30)
  expect(pagedPlanOn(shape, { nodes }, card(80, gpus), cards).plan.parallel).toEqual(parallel)
})

test('what is given decides: context, bytes of the cache, share of the card', () => {
  const shape = shapeOf(models[0]![1], models[0]![2])
  const full = pagedPlan(shape, {}, card(80))
  expect(full.plan.reason).toBeUndefined()
  expect(pagedPlan(shape, { args: ['--kv-cache-dtype=fp8'] }, card(80)).bytes).toBeLessThan(full.bytes - 8 * GiB)
  expect(pagedPlan(shape, { context_length: 8192 }, card(80)).bytes).toBeLessThan(full.bytes - 14 * GiB)
  expect(pagedPlan(shape, { args: ['--max-model-len', '8K'] }, card(80)).bytes).toBe(
    pagedPlan(shape, { context_length: 8192 }, card(80)).bytes,
  )
  expect(pagedPlan(shape, { args: ['--gpu-memory-utilization', '0.5'] }, card(80)).bytes).toBe(40 * GiB)
  expect(pagedPlan(shape, { memory: 22 * GiB }, card(80))).toMatchObject({
    bytes: 22 * GiB,
    fits: true,
    plan: { maxLength: 36_864 },
  })
})

/** What vLLM takes of the whole card, whoever uses it, and SGLang of what is free, with activations and graphs besides. */
test.each<[option: string, gib: number, free: number, devices: number, booked: number]>([
  ['--gpu-memory-utilization 0.5', 80, 80, 1, 40],
  ['--gpu-memory-utilization 0.9', 80, 50, 1, 72],
  ['--gpu-memory-utilization 0.9', 80, 80, 2, 144],
  ['--gpu-memory-utilization 0.99', 80, 80, 1, 77.6],
  ['--mem-fraction-static 0.5', 80, 80, 1, 40 + 2.5],
  ['--mem-fraction-static 0.5', 80, 50, 1, 25 + 2.5],
  ['--mem-fraction-static=0.5', 80, 80, 2, 80 + 4],
  ['--mem-fraction-static 0.99', 80, 80, 1, 77.6],
  ['--mem-fraction-static 0.99', 80, 50, 1, 47.6],
])('%s of cards of %s GiB with %s free, %s of them', (option, gib, free, devices, booked) => {
  const shape = shapeOf(models[0]![1], models[0]![2])
  const size = { total: gib * GiB, free: free * GiB }
  const target = { ...card(gib, devices), capacity: (free - 0.03 * gib) * GiB, sizes: [size, size] }
  const { bytes } = pagedPlan(shape, { args: option.split(' ') }, target)
  expect(bytes / GiB).toBeCloseTo(booked, 0)
})

test('a context that does not fit is explained with one that does', () => {
  const shape = shapeOf(models[0]![1], models[0]![2])
  expect(pagedPlan(shape, {}, card(24)).plan.reason).toBe(
    'A context of 131072 tokens needs 33.7 GiB, and 22.8 GiB can be had, so requests have at most 43008 tokens.',
  )
  const fixed = pagedPlan(shape, { context_length: 65_536 }, card(24))
  expect(fixed).toMatchObject({
    fits: false,
    plan: { reason: expect.stringContaining('; context_length: 43008 would fit.') },
  })
  expect(fixed.bytes).toBeGreaterThan(card(24).capacity)
  expect(pagedPlan(shape, {}, card(16))).toMatchObject({
    fits: false,
    plan: { reason: expect.stringMatching(/15\.2 GiB can be had\.$/) },
  })
})

test('a configuration that describes no transformer has no shape', () => {
  for (const config of [null, [], {}, { hidden_size: 5 }, { num_hidden_layers: 1e9, hidden_size: 8 }])
    expect(transformersShape(config)).toBeNull()
})
