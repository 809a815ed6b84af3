import { describe, expect, test } from 'vitest'
import type { GgufValue } from '../../../../core/models/gguf-format.ts'
import { ggufHeader } from '../../../../core/models/gguf-header.ts'
import { needOf } from '../../../../gpu/engines/gguf/sizing-need.ts'

type Fields = Record<string, GgufValue>

/** A header without tensors. */
function made(architecture: string, blocks: number, fields: Fields) {
  const metadata = new Map<string, GgufValue>([['general.architecture', architecture]])
  for (const [key, value] of Object.entries({ block_count: blocks, ...fields }))
    metadata.set(`${architecture}.${key}`, value)
  return ggufHeader('made.gguf', [{ version: 3, metadata, tensors: [], dataStart: 0, dataBytes: 0 }])
}
const heads = (query: GgufValue, kv: GgufValue, key?: number, value = key): Fields => ({
  'attention.head_count': query,
  'attention.head_count_kv': kv,
  ...(key === undefined ? {} : { 'attention.key_length': key, 'attention.value_length': value! }),
})
const window = (tokens: number): Fields => ({ 'attention.sliding_window': tokens })
const latent: Fields = { 'attention.key_length_mla': 192, 'attention.value_length_mla': 128 }
const ssm = (inner: number, size: number, groups?: number): Fields => ({
  'ssm.conv_kernel': 4,
  'ssm.inner_size': inner,
  'ssm.state_size': size,
  ...(groups === undefined ? {} : { 'ssm.group_count': groups }),
})
const each = <T>(blocks: number, value: (block: number) => T) =>
  Array.from({ length: blocks }, (_, block) => value(block))
const some = (blocks: number, full: readonly number[], kv: number) => each(blocks, at => (full.includes(at) ? kv : 0))
const gemma4 = each(60, at => (at + 1) % 6 !== 0)
const nemotron = some(56, [14, 21, 30, 39], 8)

/**
 * MiB that llama.cpp v0.5.0 reported ("size = … MiB", caches and states together) when it created contexts for models
 * with these fields: 2 × 8192 tokens of f16, 1 × 16384 of q8_0 and 4 × 2048 of f16, batches of 512, flash attention.
 */
const reported: [name: string, header: ReturnType<typeof made>, mebibytes: readonly [number, number, number]][] = [
  ['Llama 3.1 8B', made('llama', 32, { embedding_length: 4096, ...heads(32, 8) }), [2048, 1088, 1024]],
  ['Qwen3 30B A3B', made('qwen3moe', 48, heads(32, 4, 128)), [1536, 816, 768]],
  ['Gemma 3 27B', made('gemma3', 62, { ...heads(32, 16, 128), ...window(1024) }), [2528, 1011.5, 3136]],
  ['Gemma 2 9B', made('gemma2', 42, { ...heads(16, 8, 256), ...window(4096) }), [4200, 1829.62, 2688]],
  ['gpt-oss 20B', made('gpt-oss', 24, { ...heads(64, 8, 64), ...window(128) }), [420, 213.56, 264]],
  ['Command R7B', made('cohere2', 32, { ...heads(32, 8, 128), ...window(4096) }), [1376, 501.5, 1024]],
  ['DeepSeek V3', made('deepseek2', 61, { ...heads(128, 1, 576, 512), ...latent }), [1098, 583.31, 549]],
  ['DeepSeek V2 Lite, an old file', made('deepseek2', 27, heads(16, 16, 192, 128)), [4320, 2295, 2160]],
  [
    'Qwen3-Next 80B',
    made('qwen3next', 48, { ...heads(16, 2, 256), full_attention_interval: 4, ...ssm(4096, 128, 16) }),
    [534.75, 279.38, 493.5],
  ],
  [
    'Granite 4.0 H Small',
    made('granitehybrid', 40, {
      embedding_length: 4096,
      ...heads(32, some(40, [5, 15, 25, 35], 8)),
      ...ssm(8192, 128, 1),
    }),
    [550.96, 283.48, 717.92],
  ],
  ['Mamba 2 2.7B', made('mamba2', 64, { 'attention.head_count': 0, ...ssm(5120, 128, 1) }), [327.88, 163.94, 655.75]],
  ['Mamba 2.8B', made('mamba', 64, { 'attention.head_count': 0, ...ssm(5120, 16) }), [47.5, 23.75, 95]],
  [
    'LFM2 1.2B',
    made('lfm2', 16, {
      embedding_length: 2048,
      ...heads(32, some(16, [2, 5, 8, 10, 12, 14], 8)),
      'shortconv.l_cache': 3,
    }),
    [192.31, 102.16, 96.62],
  ],
  ['Llama 4 Scout', made('llama4', 48, heads(40, 8, 128)), [3072, 1058.25, 1536]],
  ['Falcon H1 7B', made('falcon-h1', 44, { ...heads(12, 2, 128), ...ssm(3072, 256, 1) }), [971.61, 507.8, 887.22]],
  [
    'Nemotron H 9B',
    made('nemotron_h', 56, {
      ...heads(40, nemotron, 128),
      feed_forward_length: nemotron.map((kv, at) => (kv === 0 && at % 2 === 1 ? 256 : 0)),
      ...ssm(10_240, 128, 8),
    }),
    [523.31, 269.66, 662.62],
  ],
  ['Phi 3 mini', made('phi3', 32, { embedding_length: 3072, ...heads(32, 32), ...window(2047) }), [6144, 3264, 3072]],
  ['Gemma 3n E4B', made('gemma3n', 35, { ...heads(8, 2, 256), ...window(512) }), [192, 85, 192]],
  [
    'Gemma 4 31B',
    made('gemma4', 60, {
      ...heads(
        32,
        gemma4.map(slides => (slides ? 16 : 4)),
        512,
      ),
      'attention.key_length_swa': 256,
      'attention.value_length_swa': 256,
      'attention.sliding_window_pattern': gemma4,
      ...window(1024),
    }),
    [3680, 1317.5, 5440],
  ],
  [
    'Kimi Linear 48B',
    made('kimi-linear', 27, {
      ...heads(
        32,
        each(27, at => ((at + 1) % 4 === 0 || at === 26 ? 32 : 0)),
        576,
        512,
      ),
      ...latent,
      'ssm.conv_kernel': 4,
      'kda.head_dim': 128,
    }),
    [4117.62, 2184.81, 2187.25],
  ],
  ['GLM 4.5 Air', made('glm4moe', 47, { ...heads(96, 8, 128), nextn_predict_layers: 1 }), [2944, 1564, 1472]],
]

const contexts = [
  { tokens: 8192, sequences: 2, kvType: 'f16' },
  { tokens: 16_384, sequences: 1, kvType: 'q8_0' },
  { tokens: 2048, sequences: 4, kvType: 'f16' },
] as const

describe('the cache is what llama.cpp reports', () => {
  test.each(reported)('%s', (_, header, mebibytes) => {
    const cacheOf = ({ kvType, ...context }: (typeof contexts)[number]) =>
      needOf(header, {
        gpuLayers: header.blockCount + 1,
        contexts: [{ ...context, batch: 512 }],
        kvType,
        flash: true,
        cards: 1,
      }).cache /
      2 ** 20
    for (const [at, context] of contexts.entries()) expect(cacheOf(context)).toBeCloseTo(mebibytes[at]!, 1)
  })
})
