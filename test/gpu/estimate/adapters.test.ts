import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { tinyChatRandom } from '../../../bin/tiny-models.ts'
import { readGgufHeader } from '../../../core/models/gguf-header.ts'
import type { Model } from '../../../core/models/model.ts'
import { transformersShape } from '../../../core/models/recognition/transformers-shape.ts'
import {
  addedAdapterAdvice,
  planAdapters,
  rankFault,
  reservedBytes,
  usableAdapters,
} from '../../../gpu/estimate/adapters.ts'
import { planMemory } from '../../../gpu/estimate/estimate.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'
import { tinyLora } from '../../_lora.ts'
import { modelOf } from '../_models.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-adapters-'))
afterAll(() => rmSync(folder, { recursive: true }))
const gguf = (name: string, bytes: Buffer): string => {
  const file = join(folder, `${name}.gguf`)
  writeFileSync(file, bytes)
  return file
}
const peft = (name: string, config: object, tensors?: Record<string, { shape: number[] }>): string => {
  const path = join(folder, name)
  mkdirSync(path)
  writeFileSync(join(path, 'adapter_config.json'), JSON.stringify(config))
  if (tensors) {
    const header = Buffer.from(JSON.stringify(tensors))
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(header.length))
    writeFileSync(join(path, 'adapter_model.safetensors'), Buffer.concat([length, header]))
  }
  return path
}

const base = gguf('base', tinyChatRandom())
const model = (engine: string, ...sources: string[]): Model => ({
  ...modelOf('base', { engine, source: engine === 'vllm' || engine === 'sglang' ? 'org/m' : base }),
  adapters: sources.map((source, at) => ({ id: `a${at}`, source, scale: 1, enabled: true })),
})
const faultOf = async (engine: string, source: string, known: Parameters<typeof planAdapters>[1]) =>
  (await planAdapters(model(engine, source), known))!.list[0]!.fault

describe('a GGUF adapter', () => {
  const one = gguf('one', tinyLora())
  test('is counted by its tensors', async () => {
    const target = { kind: 'cpu', devices: 1, capacity: 1e9, slots: 1 } as const
    for (const engine of ['gguf', 'llama-server']) {
      const [without, withOne] = [await planMemory(model(engine), target), await planMemory(model(engine, one), target)]
      const { tensorBytes } = await readGgufHeader(one)
      expect(tensorBytes).toBe(2 * 4 * 2 * 64 * 4 * 4)
      expect(withOne.bytes! - without.bytes!).toBe(tensorBytes)
    }
  })
  test.each<[what: string, file: () => string, fault: RegExp]>([
    ['that does not exist', () => join(folder, 'no.gguf'), /There is no file/],
    ['that is a model', () => base, /'base\.gguf' is a model and not a LoRA adapter/],
    [
      'of another family',
      () => gguf('qwen', tinyLora(1, { architecture: 'qwen3' })),
      /is for models of the architecture 'qwen3', and its base has 'llama'/,
    ],
    [
      'of another size',
      () => gguf('wide', tinyLora(1, { width: 96 })),
      /is for a model of width 96, and its base has 64/,
    ],
  ])('%s has a fault, and is left out', async (_, file, fault) => {
    const header = await readGgufHeader(base)
    const plan = await planAdapters(model('gguf', file(), one), { header })
    expect(plan!.list[0]!.fault).toMatch(fault)
    expect(usableAdapters(plan).map(({ id }) => id)).toEqual(['a1'])
  })
})

describe('a folder of PEFT', () => {
  const shape = transformersShape({
    hidden_size: 64,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    intermediate_size: 128,
    vocab_size: 100,
  })!
  test.each<[what: string, path: () => string, fault: RegExp | undefined]>([
    ['without a configuration', () => folder, /has no adapter_config\.json/],
    ['of another kind', () => peft('prompt', { peft_type: 'PROMPT_TUNING' }), /of the kind PROMPT_TUNING/],
    ['of a rank that no engine takes', () => peft('high', { r: 1024 }), /has the rank 1024, and 512 is the most/],
    [
      'for another width',
      () => peft('wide', { r: 8 }, { 'base_model.model.layers.0.self_attn.q_proj.lora_A.weight': { shape: [8, 96] } }),
      /is for a model of width 96, and its base has 64/,
    ],
    [
      'that fits',
      () => peft('fits', { r: 8 }, { 'base_model.model.layers.0.self_attn.q_proj.lora_A.weight': { shape: [8, 64] } }),
      undefined,
    ],
    [
      'whose weights cannot be read',
      () => {
        const path = peft('unreadable', { r: 8 })
        mkdirSync(join(path, 'adapter_model.safetensors'))
        return path
      },
      /adapter_model\.safetensors of the adapter 'unreadable' cannot be read: EISDIR/,
    ],
    ['on the hub', () => 'org/lora', undefined],
  ])('%s', async (_, path, fault) => {
    const found = await faultOf('vllm', path(), { shape })
    if (fault) expect(found).toMatch(fault)
    else expect(found).toBeUndefined()
  })
  test('reserves memory by the largest rank and the number of adapters at once', () => {
    // Two layers; queries and output 4 × 64, keys and values 2 × 128, feed-forward 3 × 192.
    const numbers = 2 * (4 * 64 + 2 * 128 + 3 * 192)
    expect(reservedBytes(shape, { rank: 16, atOnce: 2 }, { engine: 'vllm' })).toBe(numbers * 16 * 2 * 2)
    // SGLang has a place for requests without an adapter too.
    expect(reservedBytes(shape, { rank: 16, atOnce: 2 }, { engine: 'sglang' })).toBe(numbers * 16 * 3 * 2)
  })
})

test.each<[what: string, engine: string, args: string[], rank: number | null, fault: RegExp | undefined]>([
  ['a rank that is reserved', 'vllm', [], 64, undefined],
  [
    'a larger one',
    'vllm',
    [],
    65,
    /rank 65, .* has memory for 64\. The next load reserves more: infer model unload base$/,
  ],
  ['a larger one for SGLang', 'sglang', [], 128, /has memory for 64/],
  [
    'a larger one than the arguments name',
    'vllm',
    ['--max-lora-rank=32'],
    64,
    /for 32\. Raise --max-lora-rank in 'args'/,
  ],
  ['one that the arguments allow', 'vllm', ['--max-lora-rank', '128'], 100, undefined],
  ['one that is not known', 'vllm', [], null, undefined],
  ['an engine without ranks', 'llama-server', [], 999, undefined],
])('%s of %s', (_, engine, args, rank, fault) => {
  const told = rankFault({ id: 'base', engine, args }, rank, { rank: 64 })
  if (fault) expect(told).toMatch(fault)
  else expect(told).toBeUndefined()
})

test('before an adapter is added: its rank, and whether a running engine can read it', async () => {
  const before = peft('before', { r: 8 })
  const added = { source: peft('added', { r: 20 }), scale: 1 }
  const advice = (of: object, rank: number | null) =>
    addedAdapterAdvice({ ...model('vllm', before), ...of }, { ...added, rank })
  expect(await advice({ sandbox: 'none' }, 8)).toEqual([])
  expect(await advice({ sandbox: 'none' }, 20)).toEqual([expect.stringContaining('has memory for 8')])
  expect(await advice({ sandbox: 'files' }, 8)).toEqual([expect.stringContaining("in 'sandbox_read' of")])
  expect(await advice({ sandbox: 'files', sandbox_read: [folder] }, 8)).toEqual([])
  // The first adapter needs a new engine in any case.
  expect(await advice({ adapters: [] }, 512)).toEqual([])
})

test.each<[engine: string, options: string]>([
  ['llama-server', `--lora ${join(folder, 'x.gguf')} --lora ${join(folder, 'y.gguf')} --lora-init-without-apply`],
  ['gguf', `--adapter a0=1=${join(folder, 'x.gguf')} --adapter a1=1=${join(folder, 'y.gguf')}`],
  ['vllm', '--enable-lora --max-loras 2 --max-cpu-loras 2 --max-lora-rank 32'],
  ['sglang', '--enable-lora --max-loras-per-batch 3 --max-lora-rank 32 --lora-target-modules all'],
])('the command of %s has the options of its adapters', async (engine, options) => {
  const isGguf = engine === 'gguf' || engine === 'llama-server'
  const sources = isGguf
    ? [gguf('x', tinyLora(3)), gguf('y', tinyLora(4))]
    : [peft(`${engine}-x`, { r: 20 }), peft(`${engine}-y`, { r: 8 })]
  const one = model(engine, ...sources)
  const adapters = await planAdapters(one, {})
  const facts = { slots: 1, threads: 1, gpus: 0, memoryShare: 1, freeShare: 1, bytes: 1e9, backend: null }
  expect(
    presetOf(one)
      .command(one, { ...facts, plan: { adapters } })
      .join(' '),
  ).toContain(options)
  expect(
    presetOf(one)
      .command({ ...one, adapters: [] }, facts)
      .join(' '),
  ).not.toMatch(/lora|--adapter/)
})
