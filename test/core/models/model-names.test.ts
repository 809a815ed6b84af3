import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../core/models/config.ts'
import { defaultModels, offeredModels } from '../../../core/models/defaults.ts'
import type { EngineTraits, ModelSet, ModelSetEntry } from '../../../core/models/engine-traits.ts'
import { catalogOfWork, modelOfWork, nameAllowed, namesOf } from '../../../core/models/model-names.ts'
import { openRegistry } from '../../../core/models/registry.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'

const entry = (id: string, more: string) => `  - {id: ${id}, source: x${more}}\n`

test.each<[what: string, models: string, at: string, words: string]>([
  [
    'an alias of two models',
    entry('a', ', aliases: [x]') + entry('b', ', aliases: [x]'),
    '3',
    "'x' of 'b' is already a name of the model 'a'",
  ],
  [
    'an alias that is an id',
    entry('a', ', aliases: [b]') + entry('b', ''),
    '2',
    "the alias 'b' of 'a' is already a name of the model 'b'",
  ],
  [
    'a profile that is an alias',
    entry('a', ', aliases: [x], profiles: {x: {}}'),
    '2',
    "the profile 'x' of 'a' is already a name of that model",
  ],
  ['an alias twice', entry('a', ', aliases: [x, x]'), '2', "the alias 'x' of 'a' is already a name of that model"],
  ['an alias with a space', entry('a', ', aliases: [a b]'), '2', 'Letters, digits'],
  [
    'a prompt of a model for embeddings',
    entry('a', ', tasks: [std/embeddings], profiles: {x: {system_prompt: Hi}}'),
    '2',
    "the profile 'x' sets 'system_prompt', and the model 'a' does not generate text",
  ],
  [
    'a field that the engine cannot do',
    entry('a', ', engine: remote, url: "http://127.0.0.1/v1", features: [tools], profiles: {x: {top_k: 5}}'),
    '2',
    "the engine remote cannot do 'top_k', which the profile 'x' sets",
  ],
])('%s is an error that names its place', (_, models, line, words) => {
  const parse = () => parseConfig(`models:\n${models}`, 'infer.yaml', traitsOf)
  expect(parse).toThrow(words)
  expect(parse).toThrow(new RegExp(`^infer\\.yaml:${line}:\\d+: `))
})

test('a model named like a toy takes its place', () => {
  const { models } = parseConfig(`models:\n${entry('a', ', aliases: [infer/tiny-chat]')}`, 'infer.yaml')
  const ids = offeredModels({ models, toys: true }, defaultModels).map(({ id }) => id)
  expect(ids).not.toContain('infer/tiny-chat')
  expect(ids).toContain('infer/tiny-embed')
})

test.each<[patterns: string[] | null, kind: 'id' | 'alias' | 'profile', allowed: boolean]>([
  [null, 'profile', true],
  [['model'], 'alias', true],
  [['name'], 'alias', true],
  [['model'], 'profile', false],
  [['name'], 'profile', true],
  [['na*'], 'profile', true],
  [['other'], 'alias', false],
])('with the patterns %j a name that is an %s is allowed: %s', (patterns, kind, allowed) => {
  expect(nameAllowed(patterns, { id: 'name', kind, modelId: 'model' })).toBe(allowed)
})

const config = (models: string) => parseConfig(`models:\n${models}`, 'infer.yaml').models
const registryOf = (models: string) =>
  openRegistry({ models: config(models), defaults: () => [], traits: () => ({}) as EngineTraits })

describe('a registry', () => {
  const registry = registryOf(
    entry('a', ', aliases: [b], price: {per_image: 1}, profiles: {c: {price: {per_image: 2}}, d: {}}'),
  )

  test('finds a model by each name, with the price that applies', () => {
    const prices = ['a', 'b', 'c', 'd'].map(name => [registry.find(name)!.id, registry.find(name)!.price.per_image])
    expect(prices).toEqual([
      ['a', 1],
      ['a', 1],
      ['a', 2],
      ['a', 1],
    ])
  })

  test('finds the same object each time, and another one once the model has changed', () => {
    const before = registry.find('c')
    expect(registry.find('c')).toBe(before)
    registry.replace(config(entry('a', ', profiles: {c: {max_tokens: 3}}')))
    expect(registry.find('c')).not.toBe(before)
    expect(registry.find('b')).toBeUndefined()
    expect(registry.catalog().get('c')).toMatchObject({ id: 'c', named: { kind: 'profile', modelId: 'a' } })
  })
})

test('the names of a model: its id first', () => {
  expect(namesOf({ id: 'a', aliases: ['b'], profiles: { c: {} } })).toEqual(['a', 'b', 'c'])
})

describe('work under a name', () => {
  const find = registryOf(entry('a', ', aliases: [x]') + entry('b', ', aliases: [y]')).find

  test.each<[what: string, work: Parameters<typeof modelOfWork>[1], id: string | undefined]>([
    ['without another name', { modelId: 'a' }, 'a'],
    ['under an alias', { modelId: 'a', requestedModel: 'x' }, 'a'],
    ['under an alias that was moved', { modelId: 'a', requestedModel: 'y' }, 'a'],
    ['under a name that was removed', { modelId: 'a', requestedModel: 'z' }, undefined],
    ['by a fallback', { modelId: 'b', requestedModel: 'x', fallbackReason: 'failed' }, 'b'],
    ['by a fallback for a model that was removed', { modelId: 'b', requestedModel: 'z', fallbackReason: 'wait' }, 'b'],
    ['of a model that was removed', { modelId: 'z' }, undefined],
  ])('%s', (_, work, id) => expect(modelOfWork(find, work)?.id).toBe(id))

  const one = (id: string, more: Partial<ModelSetEntry> = {}) => ({ id, ...more }) as ModelSetEntry
  const catalog: ModelSet = new Map([
    ['a', one('a')],
    ['b', one('b')],
    ['x', one('x', { named: { kind: 'profile', modelId: 'a' }, profile: { max_tokens: 1 } })],
    ['y', one('y', { named: { kind: 'alias', modelId: 'b' } })],
  ])

  test.each<[what: string, work: Parameters<typeof catalogOfWork>[1]]>([
    ['without another name', { modelId: 'a' }],
    ['under its own name', { modelId: 'a', requestedModel: 'x' }],
    ['under a name that was removed', { modelId: 'a', requestedModel: 'z' }],
  ])('%s the catalog is unchanged', (_, work) => expect(catalogOfWork(catalog, work)).toBe(catalog))

  test('an alias that was moved stands for the model that accepted the work', () => {
    expect(catalogOfWork(catalog, { modelId: 'a', requestedModel: 'y' }).get('y')).toEqual({ id: 'y' })
  })

  test('a fallback answers under its own id, with the defaults of the requested profile', () => {
    const own = catalogOfWork(catalog, { modelId: 'b', requestedModel: 'x', fallbackReason: 'failed' })
    expect(own.get('x')).toEqual({ id: 'b', profile: { max_tokens: 1 } })
    expect(own.get('b')).toEqual(own.get('x'))
  })
})
