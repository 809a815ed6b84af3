import { expect, test } from 'vitest'
import { chooseBuild, fitOf, type MachineFacts, rankOf } from '../../../cli/models/catalog-fit.ts'
import { findCatalogModel, modelCatalog } from '../../../core/models/model-catalog/model-catalog.ts'

const gib = 2 ** 30
const engines = ['llama-server', 'whisper-server', 'vllm', 'python'] as const

/** A machine with this many GPUs of this many GiB, and the installed engines. */
function machine(gpus: number, gpuGib: number, mainGib: number, installed: readonly string[] = engines): MachineFacts {
  const gpu = { kind: 'gpu', devices: 1, capacity: Math.floor(gpuGib * gib * 0.97) } as const
  const cpu = { kind: 'cpu', devices: 1, capacity: Math.floor(mainGib * gib * 0.8) } as const
  const either = gpus > 0 ? gpu : cpu
  return {
    targets: {
      gguf: { ...either, slots: 4 },
      'llama-server': { ...either, slots: 4 },
      'whisper-server': { ...either, slots: 1 },
      python: { ...either, slots: 1 },
      vllm: { ...gpu, capacity: gpus > 0 ? gpu.capacity : 0, slots: 256 },
    },
    gpus,
    mainMemory: Math.floor(mainGib * gib * 0.8),
    missing: new Set(engines.filter(engine => !installed.includes(engine))),
  }
}

const h200 = machine(1, 139, 128)
const h200x4 = machine(4, 139, 512)
const rtx4090 = machine(1, 24, 64)
const rtx3060 = machine(1, 12, 32)
/** Two GPUs that the built-in engine cannot use yet; no other engine is installed. */
const fresh = (() => {
  const facts = machine(2, 24, 64, [])
  return { ...facts, targets: { ...facts.targets, gguf: { ...facts.targets.gguf, needsSetup: true as const } } }
})()
const laptop = machine(0, 0, 16, [])
const tiny = machine(0, 0, 2, [])

test.each([
  // A large GPU: the best quality that leaves half of it free.
  ['qwen3-8b', h200, 'gguf', 'Q8_0', 'gpu', 'leaves half of the GPU'],
  ['qwen3-32b', h200, 'gguf', 'Q8_0', 'gpu', 'leaves half of the GPU'],
  // A smaller GPU: the quality that fits with all layers.
  ['qwen3-8b', rtx4090, 'gguf', 'Q8_0', 'gpu', 'leaves half of the GPU'],
  ['qwen3-coder-30b', rtx4090, 'gguf', 'Q4_K_M', 'gpu', 'layers all fit on the GPU with a context of 32768'],
  ['qwen3-14b', rtx3060, 'gguf', 'Q4_K_M', 'gpu', 'no other quantization fits'],
  ['qwen3-8b', rtx3060, 'gguf', 'Q4_K_M', 'gpu', 'leaves half of the GPU'],
  // Too large for the GPU: some layers stay on the processor.
  ['llama-3.3-70b', rtx4090, 'gguf', 'Q4_K_M', 'split', 'the only one'],
  // GPUs that the built-in engine uses after a set-up: chosen for these.
  ['qwen3-8b', fresh, 'gguf', 'Q8_0', 'setup', 'leaves half of the GPU'],
  ['llama-3.3-70b', fresh, 'gguf', 'Q4_K_M', 'setup', 'the only one'],
  ['nomic-embed-v1.5', fresh, 'gguf', 'F16', 'setup', 'leaves half of the GPU'],
  // No GPU.
  ['qwen3-4b-2507', laptop, 'gguf', 'Q4_K_M', 'processor', 'a smaller file answers faster'],
  ['qwen3-14b', laptop, 'gguf', 'Q4_K_M', 'slow', 'no other quantization'],
  ['qwen3-32b', tiny, 'gguf', 'Q4_K_M', 'no', 'the usual one'],
  ['nomic-embed-v1.5', laptop, 'gguf', 'Q8_0', 'processor', 'a smaller file answers faster'],
  // Weights of a whole pipeline, with its text encoders.
  ['sdxl', rtx3060, 'python', null, 'gpu', 'the only one'],
  ['wan2.2-5b', rtx4090, 'python', null, 'split', 'the only one'],
  ['flux.1-schnell', rtx4090, 'python', null, 'no', 'the only one'],
  ['flux.1-schnell', h200, 'python', null, 'gpu', 'the only one'],
  ['wan2.2-5b', machine(1, 24, 64, []), 'python', null, 'missing', 'the only one'],
  // Programs that the engine needs.
  ['gemma-3-4b', laptop, 'llama-server', 'Q4_K_M', 'missing', 'the only one'],
  ['qwen2.5-vl-7b', machine(1, 24, 64, ['vllm']), 'vllm', null, 'gpu', 'the only one'],
  ['whisper-large-v3-turbo', machine(0, 0, 16), 'whisper-server', 'Q5_0', 'processor', 'a smaller file answers faster'],
] as const)('%s', (name, where, engine, quantization, grade, why) => {
  const choice = chooseBuild(findCatalogModel(name)!, where)!
  expect([choice.build.engine, choice.build.quantization, choice.fit.grade]).toEqual([engine, quantization, grade])
  expect(choice.why).toContain(why)
})

test('what GPUs do after a set-up is said with their layers, and ranked by them', () => {
  const { fit } = chooseBuild(findCatalogModel('llama-3.3-70b')!, fresh)!
  expect(fit).toMatchObject({ devices: 2, text: expect.stringMatching(/^after infer engine setup gpu: 2 GPUs/) })
  expect(fit.layers!.gpu).toBeGreaterThan(70)
  const one = machine(1, 24, 64, [])
  const small = { ...one, targets: { ...one.targets, gguf: { ...one.targets.gguf, needsSetup: true as const } } }
  const model = findCatalogModel('llama-3.3-70b')!
  const part = chooseBuild(model, small)!.fit
  expect([part.grade, rankOf(model, part)]).toEqual(['setup', rankOf(model, { ...part, grade: 'split' })])
  expect(part.text).toMatch(/^after infer engine setup gpu: GPU and processor, \d+ of 81 layers on the GPU, /)
  expect(chooseBuild(findCatalogModel('flux.1-schnell')!, fresh)!.fit.grade).toBe('no')
})

test('a named engine is used, on as many GPUs as it needs', () => {
  const model = findCatalogModel('llama-3.3-70b')!
  const choice = chooseBuild(model, h200x4, { engine: 'vllm' })!
  expect(choice.fit).toMatchObject({ grade: 'gpu', devices: 2, text: expect.stringMatching(/^2 GPUs, /) as string })
  expect(chooseBuild(model, laptop, { engine: 'vllm' })!.fit).toMatchObject({
    grade: 'no',
    text: 'no: vllm needs a GPU',
  })
  expect(chooseBuild(model, h200, { engine: 'whisper-server' })).toBeUndefined()
})

test.each([
  ['qwen3-8b', rtx3060, undefined, 'Q4_K_M', 'gpu', 32_768],
  ['qwen3-8b', rtx3060, 32_768, 'Q4_K_M', 'gpu', 32_768],
  ['qwen3-coder-30b', rtx4090, 512, 'Q5_K_M', 'gpu', 512],
  ['qwen3-4b-2507', laptop, 131_072, 'Q4_K_M', 'no', null],
] as const)('the context that is given decides what fits: %s, %#', (name, where, context, ...expected) => {
  const { build, fit } = chooseBuild(findCatalogModel(name)!, where, { context })!
  expect([build.quantization, fit.grade, fit.context]).toEqual(expected)
})

test('the fit is described with device, layers, memory and context', () => {
  const [build] = findCatalogModel('qwen3-8b')!.builds
  expect(fitOf(findCatalogModel('qwen3-8b')!, build!, h200).text).toMatch(
    /^GPU, all 37 layers, \d+(\.\d)? GiB, 4 × 32768 tokens$/,
  )
  expect(fitOf(findCatalogModel('qwen3-8b')!, build!, tiny).text).toMatch(
    /^no: needs \d\.\d GiB, and 1\.6 GiB of main memory are available$/,
  )
})

test('what would make the context longer is said in few words, and as sentences', () => {
  const model = findCatalogModel('qwen3-32b')!
  const one = chooseBuild(model, rtx4090)!.fit
  expect(one.text).toMatch(/ × 8192 tokens \(16384 with an 8-bit cache\)$/)
  expect(one.longer_context).toEqual([
    'With an 8-bit cache (`kv_type: q8_0`) the context would be 16384 tokens instead of 8192.',
  ])
  const two = chooseBuild(model, machine(2, 24, 64))!.fit
  expect(two).toMatchObject({ devices: 1, context: 8192 })
  expect(two.text).toMatch(/ \(16384 with an 8-bit cache, 32768 with 2 free GPUs\)$/)
  expect(two.longer_context).toContain('With 2 free GPUs the context would be 32768 tokens instead of 8192.')
  expect(chooseBuild(model, machine(1, 48, 64))!.fit.longer_context).toEqual([])
  // A context that was asked for stays.
  expect(chooseBuild(model, machine(2, 24, 64), { context: 4096 })!.fit.longer_context).toEqual([])
})

test('the memory of the image encoder is counted', () => {
  const model = findCatalogModel('qwen2.5-vl-7b')!
  const [build] = model.builds
  const { projector: _, ...without } = build!
  // With the 256 MiB in which it computes an image.
  const more = fitOf(model, build!, h200).memory! - fitOf(model, without, h200).memory!
  expect(more).toBe(build!.projector!.bytes! + 256 * 2 ** 20)
})

test('every model of the catalog can be assessed on every machine', () => {
  for (const where of [h200, h200x4, rtx4090, rtx3060, laptop, tiny])
    for (const model of modelCatalog()) expect(chooseBuild(model, where)?.fit.text).not.toBe('')
  const fits = modelCatalog().filter(model => chooseBuild(model, h200)!.fit.grade === 'gpu')
  expect(fits.length).toBeGreaterThan(40)
})

test('the parts of a pipeline share a GPU that is too small for all of them', () => {
  const model = findCatalogModel('wan2.2-5b')!
  expect(chooseBuild(model, rtx4090)!.fit.text).toMatch(
    /^GPU, \d+(\.\d)? GiB, with its parts in turn; \d+(\.\d)? GiB of main memory$/,
  )
  expect(chooseBuild(model, machine(1, 24, 16))!.fit.grade).toBe('no')
})

test('an engine that is not installed is named', () => {
  expect(chooseBuild(findCatalogModel('sdxl')!, machine(1, 24, 64, []))!.fit.text).toMatch(
    /^needs the engine python; then GPU, \d+(\.\d)? GiB$/,
  )
})

test('a model that no engine of infer runs is listed with the programs that run it', () => {
  expect(chooseBuild(findCatalogModel('chatterbox')!, h200)!.fit).toMatchObject({
    grade: 'external',
    text: expect.stringContaining('run it with a server with the OpenAI speech API') as string,
  })
})
