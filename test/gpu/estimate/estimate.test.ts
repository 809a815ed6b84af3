import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { tensor, writeGguf } from '../../../bin/gguf-writer.ts'
import { readGgufHeader } from '../../../core/models/gguf-header.ts'
import { estimate, ggufNeed, planMemory, type Sized } from '../../../gpu/estimate/estimate.ts'
import type { PlacementTarget } from '../../../gpu/estimate/target.ts'

const directory = mkdtempSync(join(tmpdir(), 'infer-size-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const MiB = 2 ** 20
const cpu: PlacementTarget = { kind: 'cpu', devices: 1, capacity: 2 ** 34, slots: 4 }
const nvidia: PlacementTarget = { ...cpu, kind: 'gpu' }
const model = (source?: string, more: Partial<Sized> = {}): Sized => ({
  tasks: ['std/chat-completion'],
  memory: undefined,
  source,
  context_length: undefined,
  ...more,
})
const file = (name: string, megabytes: number): string => {
  const path = join(directory, name)
  writeFileSync(path, '')
  truncateSync(path, megabytes * MiB)
  return path
}

test('the configured memory is used', async () => {
  expect(await estimate(model(file('said.gguf', 10), { memory: 5 }), cpu)).toBe(5)
})

test('without a header the estimate is the file size plus a fifth, and the base memory of an engine', async () => {
  expect(await estimate(model(file('one.gguf', 1000)), cpu)).toBe(1200 * MiB + 256 * MiB)
  expect(await estimate(model(file('one.gguf', 1000)), nvidia)).toBe(1200 * MiB + 1024 * MiB)
  expect(await estimate(model(file('one.gguf', 1000)), { ...nvidia, backend: 'vulkan' })).toBe(1200 * MiB + 256 * MiB)
})

test('a folder is the sum of its files, also through links as in hub caches', async () => {
  const folder = join(directory, 'hub')
  mkdirSync(join(folder, 'snapshots'), { recursive: true })
  truncateSync(file('blob', 0), 500 * MiB)
  symlinkSync(join(directory, 'blob'), join(folder, 'snapshots', 'model.safetensors'))
  writeFileSync(join(folder, 'config.json'), '')
  expect(await estimate(model(folder), cpu)).toBe(600 * MiB + 256 * MiB)
})

test('a folder that contains itself does not cause an endless loop', async () => {
  const loop = join(directory, 'loop')
  mkdirSync(loop)
  symlinkSync(loop, join(loop, 'again'))
  expect(await estimate(model(loop), cpu)).toBeGreaterThan(0)
})

test('a name without a file has no size; without any source only the engine is counted', async () => {
  expect(await estimate(model('org/model'), nvidia)).toBeNull()
  expect(await estimate(model(), cpu)).toBe(256 * MiB)
})

/** 16 MiB of weights, 8 MiB of them in two blocks; one token of cache takes 2 × 2 × (64 + 64) × 2 bytes. */
const header = (context: number) => {
  const path = join(directory, 'shape.gguf')
  writeFileSync(
    path,
    writeGguf(
      {
        'general.architecture': ['string', 'llama'],
        'llama.block_count': ['u32', 2],
        'llama.context_length': ['u32', context],
        'llama.embedding_length': ['u32', 256],
        'llama.feed_forward_length': ['u32', 512],
        'llama.attention.head_count': ['u32', 4],
        'llama.attention.head_count_kv': ['u32', 2],
        'llama.vocab_size': ['u32', 1000],
      },
      [tensor('token_embd.weight', [2 * MiB], 0), tensor('blk.0.w', [MiB], 0), tensor('blk.1.w', [MiB], 0)],
    ),
  )
  return path
}
const perToken = 2 * 2 * (64 + 64) * 2

test('a GGUF file needs what its header says: weights, the cache of every slot, buffers', async () => {
  const path = header(100_000)
  const size = async (context_length: number, slots: number) =>
    (await estimate(model(path, { context_length, concurrency: slots }), { ...cpu, slots }))!
  const one = await size(4096, 1)
  expect(one).toBeGreaterThan(16 * MiB + 4096 * perToken + 256 * MiB)
  expect(one).toBeLessThan(16 * MiB + 4096 * perToken + 256 * MiB + 32 * MiB)
  // Another slot has its own cache, and one number per token of the vocabulary for the next token.
  expect((await size(4096, 2)) - one).toBe(4096 * perToken + 1000 * 4)
  expect((await size(65_536, 1)) - one).toBeGreaterThan((65_536 - 4096) * perToken)
})

test('a draft model is counted with its weights, and its cache in every slot', async () => {
  const path = header(100_000)
  const size = (context_length: number, speculative: Sized['speculative'], slots = 2) =>
    estimate(model(path, { engine: 'llama-server', context_length, concurrency: slots, speculative }), {
      ...nvidia,
      slots,
    })
  const draft = { draft_model: path, tokens: 8 }
  for (const context of [4096, 65_536]) {
    // The draft model is the model itself here.
    const more = (await size(context, draft))! - (await size(context, undefined))!
    expect(more).toBe(16 * MiB + 2 * context * perToken)
  }
  const { plan } = await planMemory(model(path, { engine: 'llama-server', speculative: draft }), {
    ...nvidia,
    slots: 2,
  })
  expect(plan.draftBytes).toBe(16 * MiB + plan.layout!.parallel * plan.layout!.context * perToken)
  expect(await size(4096, { tokens: 8 })).toBe(await size(4096, undefined))
  expect(await size(4096, { draft_model: '/no/such.gguf', tokens: 8 })).toBe(await size(4096, undefined))
})

test('a context is not longer than the training context', async () => {
  const trained = await estimate(model(header(2048)), cpu)
  expect(await estimate(model(header(2048), { context_length: 50_000 }), cpu)).toBe(trained)
})

test('a model that cannot fit is reported, and its minimum is booked', async () => {
  const found = await readGgufHeader(header(100_000))
  const { bytes, sizing } = ggufNeed(found, model(undefined, { context_length: 65_536 }), {
    ...cpu,
    capacity: 300 * MiB,
  })
  expect(sizing).toBeNull()
  expect(bytes).toBeGreaterThan(300 * MiB)
  expect(ggufNeed(found, model(), { ...cpu, capacity: 400 * MiB }).bytes).toBeLessThanOrEqual(400 * MiB)
})

test('llama-server: what is booked is what its options say, with everything that it loads', async () => {
  const path = header(100_000)
  const planned = (args: string[], more: Partial<Sized> = {}) =>
    planMemory(model(path, { engine: 'llama-server', args, ...more }), nvidia)
  const cacheOf = async (...given: Parameters<typeof planned>) => (await planned(...given)).plan.layout!.need.cache
  // Four requests of 4096 tokens, in whatever way that is written.
  const usual = 4 * 4096 * perToken
  expect(await cacheOf([], { context_length: 4096 })).toBe(usual)
  expect(await cacheOf(['-c', '16384'])).toBe(usual)
  expect(await cacheOf(['--ctx-size', '8192', '-np', '2'])).toBe(usual / 2)
  expect(await cacheOf([], { env: { LLAMA_ARG_CTX_SIZE: '16384' } })).toBe(usual)
  expect(await cacheOf(['-ctk', 'q8_0', '-ctv', 'q8_0'], { context_length: 4096 })).toBe((usual * 34) / 64)
  expect((await planned(['-ngl', '1'])).plan.layout!.gpuLayers).toBe(1)

  const bare = (await planned([])).bytes!
  expect((await planned(['--lora', file('lora.gguf', 10)])).bytes! - bare).toBe(10 * MiB)
  expect((await planned(['--mmproj', file('mmproj.gguf', 500)])).bytes! - bare).toBe(500 * MiB + 256 * MiB)
  expect((await planned(['--mmproj', file('mmproj.gguf', 500), '--no-mmproj-offload'])).bytes).toBe(bare)
})

test('llama-server: the layers fit in what is booked, also where the booking is configured', async () => {
  const path = header(100_000)
  const capacity = 1024 * MiB + 30 * MiB
  const settings = { engine: 'llama-server', context_length: 4096, concurrency: 4 } as const
  const fitted = await planMemory(model(path, settings), { ...nvidia, capacity })
  expect(fitted.plan.layout!.gpuLayers).toBeLessThan(3)
  expect(fitted.bytes).toBeLessThanOrEqual(capacity)
  const given = model(path, { ...settings, memory: capacity })
  expect(await planMemory(given, nvidia)).toMatchObject({ bytes: capacity, plan: { layout: fitted.plan.layout } })
})
