import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { tensor, writeGguf } from '../../../bin/gguf-writer.ts'
import { readGgufHeader } from '../../../core/models/gguf-header.ts'
import { openGgufHeaders } from '../../../core/models/gguf-headers.ts'
import { Model } from '../../../core/models/model.ts'
import { noReadings } from '../../../gpu/devices/device.ts'
import { openModelPlacement, slotsFor } from '../../../gpu/placement/model-placement.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'
import { type DeviceCapacity, place } from '../../../gpu/residency/place.ts'
import { layeredGguf } from '../_layered-gguf.ts'
import { llama8b } from '../_llama-8b.ts'
import { modelOf } from '../_models.ts'

const GiB = 2 ** 30
const directory = mkdtempSync(join(tmpdir(), 'infer-placement-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A folder with a model of the size of Llama 3.1 8B. */
const folder = join(directory, 'eight')
mkdirSync(folder)
writeFileSync(join(folder, 'config.json'), JSON.stringify(llama8b))
for (const name of ['model.safetensors', 'consolidated.safetensors']) {
  writeFileSync(join(folder, name), '')
  truncateSync(join(folder, name), 16.06e9)
}

const eight = Model.parse({ id: 'eight', engine: 'vllm', source: folder })
const small = Model.parse({ id: 'small', engine: 'custom', command: ['x', '{port}'], memory: '10GiB' })

/** `gib`: the memory of each card, `usedByOthers`: what other programs use of it. */
async function placed(models: readonly Model[], gib: number | readonly number[], usedByOthers: readonly number[] = []) {
  const cards = [gib].flat()
  const capacities = cards.map((size, at): DeviceCapacity => {
    const foreign = usedByOthers[at] ?? 0
    const capacity = Math.floor((0.97 * size - foreign) * GiB)
    return { id: `gpu${at}`, kind: 'gpu', capacity, totalBytes: size * GiB, usedByOthers: foreign * GiB }
  })
  const placements = openModelPlacement(
    {
      devices: () => capacities,
      left: () => [],
      capacities: () => capacities,
      refresh: () => Promise.resolve(false),
    } as never,
    { find: () => Promise.resolve({ gpu: 'cuda', folder: '/cuda' }) },
    { tool: { name: 'bubblewrap', network: true } } as never,
    { find: () => Promise.resolve(undefined) },
    () => models,
  )
  const placement = await placements.placementOf(models[0]!)
  const decision = place({ ...placement, mayEvict: true }, [], capacities)
  const { longer } = decision.do === 'load' ? decision : {}
  const { bytes, plan } = longer?.layout ?? placement
  const {
    devices = [],
    shares = devices.map(() => bytes / devices.length),
    layers,
  } = decision.do === 'load' ? decision : {}
  const sizes = devices.map(id => capacities.find(one => one.id === id)!.totalBytes!)
  const memoryShare = Math.max(0, ...shares.map((share: number, at: number) => share / sizes[at]!))
  const facts = {
    slots: longer?.slots ?? slotsFor(models[0]!, plan),
    threads: 1,
    gpus: Math.max(1, devices.length),
    bytes,
    memoryShare,
    freeShare: memoryShare,
    layers,
  }
  const command = presetOf(models[0]!).command(models[0]!, { ...facts, backend: null, plan })
  return { gib: placement.bytes / GiB, command: command.join(' '), placement, decision, devices, shares }
}

test('vLLM gets the card that nobody else wants, and room for its full context', async () => {
  const { gib, command } = await placed([eight], 80)
  expect(gib).toBeCloseTo(76, 1)
  expect(command).toContain('--gpu-memory-utilization 0.95 ')
  expect(command).not.toContain('--max-model-len')
})

test.each([
  ['vllm', {}, 8],
  ['sglang', {}, 8],
  ['vllm', { args: ['--gpu-memory-utilization', '0.04'] }, 0],
])('%s %j: the least share that a small model is told is booked', async (engine, of, gib) => {
  const little = join(directory, 'little')
  mkdirSync(little, { recursive: true })
  writeFileSync(join(little, 'config.json'), JSON.stringify({ ...llama8b, num_hidden_layers: 2 }))
  writeFileSync(join(little, 'model.safetensors'), '')
  truncateSync(join(little, 'model.safetensors'), 0.3e9)
  const model = Model.parse({ id: 'little', engine, source: little, context_length: 2048, ...of })
  // Others are configured to need the rest, so that it gets no more than it needs.
  const other = Model.parse({ id: 'other', engine: 'custom', command: ['x', '{port}'], memory: '76GiB' })
  const { gib: booked, command } = await placed([model, other], 80)
  const share = Number(/(?:utilization|static) ([\d.]+)/.exec(command)![1])
  if (gib === 0) return expect([share, booked < 8]).toEqual([0.04, true])
  expect(share * 80).toBeLessThanOrEqual(booked + 0.01)
  expect(booked).toBeGreaterThanOrEqual(gib)
})

test('what other models are configured to need is left to them', async () => {
  expect((await placed([eight, small], 80)).gib).toBeCloseTo(0.97 * 80 - 10, 1)
  const disabled = { ...small, enabled: false }
  expect((await placed([eight, disabled], 80)).gib).toBeCloseTo(76, 1)
  // Two that do not fit at once get what they need.
  const large = { ...small, memory: 60 * GiB }
  expect((await placed([eight, large], 80)).gib).toBeCloseTo(33.7, 1)
})

test('on a card without room for the full context it gets the longest that fits', async () => {
  const { gib, command } = await placed([eight], 24)
  expect(gib).toBeLessThanOrEqual(22.8)
  expect(command).toContain('--max-model-len 43008')
})

/** Writes the header of a model of two blocks; returns its path. */
function twoBlocks(name: string, context_length: number, heads: number): string {
  const fields = {
    block_count: 2,
    context_length,
    embedding_length: 64 * heads,
    feed_forward_length: 512,
    vocab_size: 1000,
    'attention.head_count': heads,
    'attention.head_count_kv': heads / 2,
  }
  const keys = Object.entries(fields).map(([key, value]) => [`llama.${key}`, ['u32', value]])
  const weights = ['token_embd.weight', 'blk.0.w', 'blk.1.w'].map(name => tensor(name, [2 ** 21], 0))
  const path = join(directory, name)
  const header = { 'general.architecture': ['string', 'llama'] as const, ...Object.fromEntries(keys) }
  writeFileSync(path, writeGguf(header, weights))
  return path
}

test('a model serves several requests with the context that people need where no other model needs the memory', async () => {
  // 1 GiB of cache for 32,768 tokens.
  const source = twoBlocks('wide.gguf', 131_072, 128)
  const wide = Model.parse({ id: 'wide', engine: 'llama-server', source })
  const others = (memory: string) => [wide, { ...small, memory: Number(memory) * GiB }]
  expect((await placed([wide], 8)).command).toContain(' -np 4 -c 131072 ')
  expect((await placed(others('1'), 8)).command).toContain(' -np 4 -c 131072 ')
  expect((await placed(others('5'), 8)).command).toContain(' -np 1 -c 32768 ')
  expect((await placed(others('7'), 8)).command).toContain(' -np 1 -c 32768 ')
})

test('llama-server gets the layers and the context that were booked', async () => {
  const source = twoBlocks('two-blocks.gguf', 4096, 4)
  const server = Model.parse({ id: 'server', engine: 'llama-server', source, concurrency: 2 })
  const all = await placed([server], 24)
  expect(all.command).toContain(' -np 2 -c 8192 -ngl 3 ')
  // A card that has room for a part of the 24 MiB besides CUDA.
  const some = await placed([server], 1.06)
  expect(some.command).toMatch(/ -np 2 -c 8192 -ngl [12] /)
  expect(some.gib).toBeLessThanOrEqual(0.97 * 1.06)
})

describe('a model that fits on no single card is divided by itself', () => {
  const servers = ['llama-server', 'gguf'] as const
  const modelOfSize = (gigabytes: number, engine: string, of: object = {}) =>
    Model.parse({
      id: 'large',
      engine,
      source: layeredGguf(directory, gigabytes, 8192),
      concurrency: 1,
      context_length: 4096,
      ...of,
    })

  test.each(servers)('%s: 30 GiB on 24 + 24 and on 24 + 12, 40 GiB on two of 24', async engine => {
    for (const [gigabytes, cards] of [
      [30, [24, 24]],
      [29, [12, 24]],
      [40, [24, 24]],
    ] as const) {
      const { decision, shares, placement } = await placed([modelOfSize(gigabytes, engine)], cards)
      expect(decision).toMatchObject({ do: 'load', devices: ['gpu0', 'gpu1'], evict: [] })
      expect(placement.plan?.layout?.gpuLayers).toBe(41)
      for (const [at, share] of shares.entries()) expect(share).toBeLessThanOrEqual(0.97 * cards[at]! * GiB)
      expect(shares.reduce((sum: number, share: number) => sum + share, 0) / GiB).toBeGreaterThan(gigabytes + 2)
    }
  })

  test('llama-server is told which layers are on which card, in the order in which it sees them', async () => {
    const { command, decision } = await placed([modelOfSize(29, 'llama-server')], [12, 24])
    const { layers } = decision as unknown as { layers: number[] }
    expect(layers.reduce((sum, count) => sum + count, 0)).toBe(41)
    expect(layers[1]! / layers[0]!).toBeGreaterThan(2)
    expect(command).toContain(`-ngl 41 -sm layer -ts ${layers.join(',')} `)
  })

  test('the built-in engine gets the memory of the layout that was booked', async () => {
    const { command, placement } = await placed([modelOfSize(30, 'gguf')], [24, 24])
    expect(command).toContain(`--memory ${Math.floor(placement.bytes) - 2 * GiB}`)
  })

  test('one card where one suffices, and where one is configured', async () => {
    expect((await placed([modelOfSize(18, 'gguf')], [24, 24])).devices).toHaveLength(1)
    const one = await placed([modelOfSize(30, 'gguf', { devices: 1 })], [24, 24])
    expect(one.devices).toHaveLength(1)
    expect(one.placement.plan?.layout?.gpuLayers).toBeLessThan(41)
  })

  test('what fits on all cards together only in part has as many layers there as possible', async () => {
    const { devices, placement } = await placed([modelOfSize(42, 'gguf')], [24, 12])
    expect(devices).toEqual(['gpu0', 'gpu1'])
    expect(placement.plan?.layout?.gpuLayers).toBeGreaterThan(27)
  })

  test('a configured amount of memory is divided in the same proportions', async () => {
    const { shares, gib } = await placed([modelOfSize(20, 'gguf', { memory: '33GiB' })], [24, 12])
    expect(gib).toBe(33)
    expect(shares[0]! + shares[1]!).toBeCloseTo(33 * GiB, -3)
  })

  test('the layers and the requests of a configured amount are known, and its engine gets no more', async () => {
    const { placement, command } = await placed(
      [modelOfSize(18, 'gguf', { memory: '23GiB', context_length: 8192, concurrency: undefined })],
      [24],
    )
    expect(placement).toMatchObject({ bytes: 23 * GiB, plan: { layout: { gpuLayers: 41, layers: 41, parallel: 2 } } })
    const memory = Number(/--memory (\d+)/.exec(command)![1])
    expect(memory).toBeLessThanOrEqual(22 * GiB)
    expect(command).toContain('--parallel 2 ')
  })

  test('cards that are named are used unevenly, too', async () => {
    const { devices } = await placed([modelOfSize(29, 'llama-server', { devices: [0, 1] })], [12, 24, 24])
    expect(devices).toEqual(['gpu0', 'gpu1'])
  })

  test('a model that one card holds with a short context gets a further one for the context that people need', async () => {
    const chat = (of: object = {}) =>
      Model.parse({ id: 'chat', engine: 'llama-server', source: layeredGguf(directory, 17, 131_072), ...of })
    const two = await placed([chat()], [24, 24])
    expect(two.placement).toMatchObject({ devices: 1, longer: { tokens: 32_768, fewerTokens: 16_384 } })
    expect(two.placement.longerContext).toEqual([
      'With an 8-bit cache (`args: [-ctk, q8_0, -ctv, q8_0]`) the context would be 32768 tokens instead of 16384.',
      'With 2 free GPUs the context would be 32768 tokens instead of 16384.',
    ])
    expect(two.decision).toMatchObject({ do: 'load', devices: ['gpu0', 'gpu1'], evict: [] })
    expect(two.command).toMatch(/ -np 2 -c 65536 -ngl 41 -sm layer -ts \d+,\d+ /)
    expect(two.shares.reduce((sum: number, share: number) => sum + share, 0)).toBeCloseTo(
      two.placement.longer!.layout.bytes,
      -3,
    )
    // One card has the context, or no number of them has; the configuration names cards, a context or memory.
    const alone = [
      [chat(), [48, 24]],
      [chat(), [24, 1]],
      [chat({ devices: 1 }), [24, 24]],
      [chat({ context_length: 8192 }), [24, 24]],
      [chat({ args: ['-c', '8192'] }), [24, 24]],
      [chat({ memory: '22GiB' }), [24, 24]],
      [chat({ replicas: { min: 0, max: 2 } }), [24, 24]],
    ] as const
    for (const [model, cards] of alone) {
      const { placement, devices } = await placed([model], cards)
      expect(placement.longer).toBeUndefined()
      expect(devices).toHaveLength(1)
    }
  })

  test('vLLM gets equal parts on cards that divide its heads, and a pipeline where none do', async () => {
    const wide = join(directory, 'wide')
    mkdirSync(wide)
    const config = { model_type: 'llama', num_hidden_layers: 32, hidden_size: 4096, intermediate_size: 14_336 }
    const heads = { num_attention_heads: 32, num_key_value_heads: 8, max_position_embeddings: 131_072 }
    writeFileSync(join(wide, 'config.json'), JSON.stringify({ ...config, ...heads, vocab_size: 128_256 }))
    writeFileSync(join(wide, 'model.safetensors'), '')
    truncateSync(join(wide, 'model.safetensors'), 30e9)
    const vllm = (of: object = {}) => Model.parse({ id: 'wide', engine: 'vllm', source: wide, ...of })
    const two = await placed([vllm()], [24, 24, 24])
    expect(two.devices).toHaveLength(2)
    expect(two.command).toContain('--tensor-parallel-size 2 --gpu')
    // The third is too small to be one of four.
    const three = await placed([vllm()], [16, 16, 16])
    expect(three.devices).toHaveLength(3)
    expect(three.command).toContain('--tensor-parallel-size 1 --pipeline-parallel-size 3 ')
    expect((await placed([vllm({ devices: 3, engine: 'sglang' })], [24, 24, 24])).command).toContain(
      '--tp-size 1 --pp-size 3 ',
    )
    // As many on each card as the smallest has, and what the engine is told of each is booked there.
    const share = ({ command }: { command: string }) => Number(/(?:utilization|static) ([\d.]+)/.exec(command)![1])
    for (const [cards, usedByOthers] of [
      [[24, 48], []],
      [[80, 24], []],
      [
        [24, 48],
        [0, 4],
      ],
      [
        [24, 48],
        [2, 0],
      ],
    ] as const) {
      const two = await placed([vllm({ devices: 2 })], cards, usedByOthers)
      expect(two.gib / 2).toBeLessThanOrEqual(24)
      for (const [at, size] of cards.entries()) {
        const booked = two.shares[two.devices.indexOf(`gpu${at}`)]! / GiB
        expect(share(two) * size).toBeLessThanOrEqual(booked + 1e-6)
        expect(share(two) * size + 0.01).toBeGreaterThanOrEqual(two.gib / 2)
        expect(booked).toBeLessThanOrEqual(0.97 * size - (usedByOthers[at] ?? 0))
      }
    }
  })
})

test('a configured amount stays', async () => {
  expect((await placed([{ ...eight, memory: 40 * GiB }], 80)).gib).toBe(40)
  expect((await placed([{ ...eight, args: ['--gpu-memory-utilization', '0.5'] }], 80)).gib).toBe(40)
})

test('a share in the arguments is booked of each card as the engine takes it', async () => {
  const half = { ...eight, args: ['--gpu-memory-utilization', '0.5'] }
  const uneven = await placed([{ ...half, devices: 2 }], [80, 48])
  const shares = uneven.shares.map((bytes: number) => bytes / GiB)
  expect(Object.fromEntries(uneven.devices.map((id, at) => [id, shares[at]]))).toEqual({ gpu0: 40, gpu1: 24 })
  // vLLM does not start where other programs leave less.
  expect((await placed([{ ...eight, args: ['--gpu-memory-utilization', '0.9'] }], 80, [20])).decision.do).not.toBe(
    'load',
  )
  const sglang = Model.parse({ id: 'eight', engine: 'sglang', source: folder, args: ['--mem-fraction-static', '0.5'] })
  expect((await placed([sglang], 80, [20])).gib).toBeCloseTo(0.5 * 60 + 2.5, 0)
})

/** The placements on a machine with one GPU, where another program releases what it uses of 10 GiB. */
function openShared(usedByOthers: number, readHeader = readGgufHeader) {
  let free = 10 - usedByOthers
  let measurements = 0
  const card = { id: 'gpu0', kind: 'gpu' as const, name: 'Card', totalBytes: 10 * GiB, usedBytes: null }
  const memory = {
    devices: () => [{ ...card, ...noReadings, cudaId: '0', uuid: null, cores: null }],
    left: () => [],
    capacities: () => [{ id: 'gpu0', kind: 'gpu' as const, capacity: free * GiB }],
    async refresh() {
      measurements++
      const changed = free < 10
      free = 10
      return changed
    },
  }
  const placements = openModelPlacement(
    memory,
    { find: async () => null },
    { tool: null, why: 'not in this test' },
    { find: async () => undefined },
    () => [],
    openGgufHeaders(readHeader),
  )
  return { placements, measurements: () => measurements }
}

test('a model that does not fit is sized again once the GPU was measured', async () => {
  const { placements, measurements } = openShared(6)
  // Of unknown size, so that it gets a whole GPU.
  const model = modelOf('a', { source: 'some/name', engine: 'vllm', command: undefined })
  expect(await placements.placementOf(model)).toMatchObject({ bytes: 4 * GiB })
  expect(measurements()).toBe(0)
  const larger = modelOf('b', { memory: '6GiB' })
  expect(await placements.placementOf(larger)).toMatchObject({ bytes: 6 * GiB, kind: 'gpu' })
  expect(measurements()).toBe(1)
  await placements.placementOf(modelOf('c', { memory: '8GiB' }))
  expect(measurements()).toBe(1)
})

test('a layout that infer chooses leaves free what earlier engines used more than was estimated', async () => {
  const MiB = 2 ** 20
  const source = join(directory, 'cache.gguf')
  const tensors = [tensor('token_embd.weight', [2 * MiB], 0), tensor('blk.0.w', [MiB], 0), tensor('blk.1.w', [MiB], 0)]
  const header = {
    'general.architecture': ['string', 'llama'],
    'llama.block_count': ['u32', 2],
    'llama.context_length': ['u32', 1_000_000],
    'llama.embedding_length': ['u32', 256],
    'llama.feed_forward_length': ['u32', 512],
    'llama.attention.head_count': ['u32', 4],
    'llama.attention.head_count_kv': ['u32', 2],
    'llama.vocab_size': ['u32', 1000],
  } as const
  writeFileSync(source, writeGguf(header, tensors))
  const model = modelOf('a', { engine: 'llama-server', source, command: undefined })
  const layout = async (usedByOthers: number, excess: number, bytesEach?: number) =>
    (await openShared(usedByOthers).placements.placementOf(model, undefined, { excess, bytesEach })).plan!.layout!
  expect(await layout(8.9, 0)).toMatchObject({ context: 32_768, gpuLayers: 3 })
  expect(await layout(8.9, 40 * MiB)).toMatchObject({ context: 16_384, gpuLayers: 3 })
  expect(await layout(0, 20 * GiB)).toMatchObject({ context: 32_768, gpuLayers: 3 })
  // One that ran out of memory is followed by one that needs less, however much seems to be free.
  const { placements } = openShared(0)
  const full = await placements.placementOf(model)
  const bytesEach = full.bytes - full.plan!.layout!.need.cache / 2
  const { bytes, plan } = await placements.placementOf(model, undefined, { excess: 0, bytesEach })
  expect(bytes).toBeLessThanOrEqual(bytesEach)
  expect(plan!.layout).toMatchObject({ context: 32_768, gpuLayers: 3 })
  expect(plan!.layout!.parallel).toBeLessThan(full.plan!.layout!.parallel)
})

test('the layout of a model on other cards than it would get, for which its own context does not count', async () => {
  const capacities = [24, 16].map(
    (size, at): DeviceCapacity => ({ id: `gpu${at}`, kind: 'gpu', capacity: size * GiB, totalBytes: size * GiB }),
  )
  const placements = openModelPlacement(
    { devices: () => capacities, left: () => [], capacities: () => capacities } as never,
    { find: () => Promise.resolve({ gpu: 'cuda', folder: '/cuda' }) },
    { tool: { name: 'bubblewrap', network: true } } as never,
    { find: () => Promise.resolve(undefined) },
    () => [],
  )
  const source = layeredGguf(directory, 12, 131_072)
  const of = (more: object) => Model.parse({ id: 'a', engine: 'gguf', source, context_length: 65_536, ...more })
  expect(await placements.layoutOn(of({}), ['gpu1'])).toMatchObject({ gpuLayers: 41, context: 8192 })
  expect(await placements.layoutOn(of({}), [])).toBeNull()
  expect(await placements.layoutOn(of({ memory: '20GiB' }), ['gpu1'])).toBeNull()
  expect(await placements.layoutOn(of({ source: layeredGguf(directory, 17, 131_072) }), ['gpu1'])).toBeNull()
})

test('the header of a model is read once, until its file changes or could not be read', async () => {
  const source = join(directory, 'once.gguf')
  let reads = 0
  const { placements } = openShared(0, path => {
    reads++
    return readGgufHeader(path)
  })
  const header = { 'general.architecture': ['string', 'llama'], 'llama.block_count': ['u32', 1] } as const
  const model = modelOf('a', { engine: 'gguf', source, command: undefined })
  const place = () => placements.placementOf(model)
  writeFileSync(source, 'no GGUF file, but of more than 24 bytes')
  expect((await place()).loadFault?.lies).toBe('files')
  await place()
  expect(reads).toBe(2)
  writeFileSync(source, writeGguf(header, [tensor('token_embd.weight', [64], 0)]))
  await Promise.all([place(), place(), place()])
  expect(reads).toBe(3)
  writeFileSync(source, writeGguf(header, [tensor('token_embd.weight', [128], 0)]))
  await place()
  expect(reads).toBe(4)
})

test('a model is bound to the cards that it names', async () => {
  const cards = [24, 12, 24].map((gib, at) => ({
    id: `gpu${at}`,
    kind: 'gpu' as const,
    name: 'Card',
    uuid: null,
    gib,
  }))
  const memory = {
    devices: () => cards,
    left: () => [],
    capacities: () => cards.map(({ id, kind, gib }) => ({ id, kind, capacity: gib * GiB })),
    refresh: async () => false,
  }
  const placements = openModelPlacement(
    memory as never,
    { find: async () => null },
    { tool: null, why: 'not in this test' },
    { find: async () => undefined },
    () => [],
  )
  const of = (devices: unknown) => modelOf('m', { source: 'some/name', engine: 'vllm', command: undefined, devices })
  expect(await placements.placementOf(of([1, 2]))).toMatchObject({
    devices: 2,
    only: ['gpu1', 'gpu2'],
    bytes: 24 * GiB,
  })
  expect(await placements.placementOf(of([0, 2]))).toMatchObject({
    only: ['gpu0', 'gpu2'],
    bytes: 48 * GiB,
  })
  expect(await placements.placementOf(of(['gpu7']))).toMatchObject({
    impossible: "'m' is to use the GPU 'gpu7' (devices), and this server has gpu0 (Card), gpu1 (Card), gpu2 (Card).",
  })
})
