import { expect, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import { findCatalogModel, modelCatalog } from '../../../core/models/model-catalog/model-catalog.ts'
import { catalogPagedShape, catalogShape, weightBytes } from '../../../gpu/estimate/catalog-shape.ts'
import { ggufNeed } from '../../../gpu/estimate/estimate.ts'
import { pagedPlan } from '../../../gpu/estimate/paged-plan.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'

const builds = modelCatalog().flatMap(model => model.builds.map(build => ({ model, build })))
const ggufBuilds = builds.filter(({ build }) => build.engine === 'gguf' || build.engine === 'llama-server')
const ample = { kind: 'gpu', devices: 1, capacity: 2 ** 40, slots: 4 } as const

test('the engine of every build supports the tasks of its model', () => {
  for (const { model, build } of builds.filter(({ build }) => build.engine !== null)) {
    const entry = { id: model.name, engine: build.engine!, source: '/m', tasks: model.tasks, args: ['--mmproj', '/p'] }
    expect(() => presetOf(Model.parse(entry))).not.toThrow()
  }
})

test('memory can be computed for every GGUF build, and is more than its weights', () => {
  for (const { model, build } of ggufBuilds) {
    const { bytes, sizing } = ggufNeed(catalogShape(model, build)!, { tasks: model.tasks }, ample)
    expect([model.name, sizing?.gpuLayers]).toEqual([model.name, model.architecture!.layers + 1])
    expect(bytes).toBeGreaterThan(weightBytes(model, build)!)
  }
})

test('computed sizes agree with known ones', () => {
  // Rows that are no multiple of 256 numbers are stored with more bits, and small models have large vocabularies.
  const large = ggufBuilds.filter(({ model, build }) => build.bytes !== null && model.parameters! > 3e9)
  expect(large.length).toBeGreaterThan(20)
  for (const { model, build } of large) {
    const computed = weightBytes(model, { ...build, bytes: null })!
    expect([model.name, build.quantization, Math.abs(computed / build.bytes! - 1) < 0.07]).toEqual([
      model.name,
      build.quantization,
      true,
    ])
  }
})

test('the cache of Qwen3 8B is 144 KiB a token', () => {
  const model = findCatalogModel('qwen3-8b')!
  const { sizing } = ggufNeed(
    catalogShape(model, model.builds[0]!)!,
    { tasks: model.tasks, context_length: 8192 },
    ample,
  )
  expect(sizing!.need.cache).toBe(4 * 8192 * 144 * 1024)
  expect(sizing!.need.weights).toBe(model.builds[0]!.bytes)
})

test('layers with a sliding window only cache the window, and encoders have no cache', () => {
  const cacheOf = (name: string, context: number) => {
    const model = findCatalogModel(name)!
    return ggufNeed(catalogShape(model, model.builds[0]!)!, { tasks: model.tasks, context_length: context }, ample)
      .sizing!.need.cache
  }
  // 20 of 24 … every second layer of gpt-oss sees 128 tokens.
  expect(cacheOf('gpt-oss-20b', 131_072)).toBeLessThan(0.52 * 24 * 8 * 64 * 2 * 2 * 131_072 * 4)
  expect(cacheOf('bge-m3', 8192)).toBe(0)
})

test('a model with neither a known size nor known parameters has no shape and no weight', () => {
  const model = { ...findCatalogModel('qwen3-8b')!, parameters: null }
  const build = { ...model.builds[0]!, bytes: null }
  expect([catalogShape(model, build), weightBytes(model, build)]).toEqual([null, null])
  expect(catalogShape({ ...model, architecture: null, parameters: 8e9 }, build)).toBeNull()
})

test('vLLM needs weights and the cache of one full request, by the catalog as by config.json', () => {
  const model = findCatalogModel('llama-3.3-70b')!
  const build = model.builds.find(({ engine }) => engine === 'vllm')!
  const { bytes } = pagedPlan(catalogPagedShape(model, build)!, {}, { ...ample, slots: 256 })
  const cache = 80 * 8 * 128 * 2 * 2 * 131_072
  expect(bytes / (weightBytes(model, build)! + cache)).toBeCloseTo(1.02, 1)
  const small = pagedPlan(catalogPagedShape(model, build)!, { context_length: 8192 }, { ...ample, slots: 256 })
  expect(bytes - small.bytes).toBeGreaterThan(cache * 0.9)
})
