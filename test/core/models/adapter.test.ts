import { describe, expect, test } from 'vitest'
import { sameEngine } from '../../../core/models/change.ts'
import { parseConfig } from '../../../core/models/config.ts'
import type { Model } from '../../../core/models/model.ts'
import { modelNames, modelOfWork, namesOf } from '../../../core/models/model-names.ts'
import { openRegistry } from '../../../core/models/registry.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'

const base = '  - {id: base, source: /models/m.gguf, price: {per_image: 1}, profiles: {p: {}}}\n'
const adapter = (id: string, of: string, more = '', source = '/models/a.gguf', scale = 1) =>
  `  - {id: ${id}, adapter: {of: ${of}, source: ${source}, scale: ${scale}}${more}}\n`
const vllm = '  - {id: base, engine: vllm, source: org/m}\n'

test.each<[what: string, models: string, line: string, words: string]>([
  [
    'an unknown base',
    base + adapter('a', 'other'),
    '3',
    "names the base model 'other', which is not in this file. Name one of: base.",
  ],
  [
    'an adapter of an adapter',
    base + adapter('a', 'base') + adapter('b', 'a'),
    '4',
    "'a' is an adapter itself, so 'b' cannot be an adapter of it. Name its base model: 'base'.",
  ],
  [
    'a setting of the engine',
    base + adapter('a', 'base', ', idle_ttl: 5m'),
    '3',
    "'idle_ttl' cannot be set for the adapter 'a': it has that of its base model 'base'",
  ],
  [
    'a base without text',
    `${base}  - {id: e, source: /models/e.gguf, tasks: [std/embeddings]}\n${adapter('a', 'e')}`,
    '4',
    "the base model 'e' of the adapter 'a' does not generate text. Name one of: base.",
  ],
  ['a name twice', base + adapter('base', 'base'), '3', "'base' is used twice"],
  [
    'a name that is a profile',
    base + adapter('p', 'base'),
    '2',
    "the profile 'p' of 'base' is already a name of the model 'p'",
  ],
  [
    'a profile of another name',
    base + adapter('a', 'base', ', profiles: {p: {}}'),
    '3',
    "the profile 'p' of 'a' is already a name of the model 'base'",
  ],
  [
    'an engine that has none',
    `  - {id: base, engine: tei, source: org/m, tasks: [std/chat-completion]}\n${adapter('a', 'base')}`,
    '2',
    "the engine 'tei' cannot run it: it has no LoRA adapters, and 'a' is one of this model. These engines have: gguf, llama-server, vllm, sglang.",
  ],
  ['a folder for llama.cpp', base + adapter('a', 'base', '', '/models/a'), '2', "the adapter 'a' must be a GGUF file"],
  ['a GGUF file for vLLM', vllm + adapter('a', 'base'), '2', "the adapter 'a' is a GGUF file. Name its folder"],
  ['a scale for vLLM', vllm + adapter('a', 'base', '', '/models/a', 0.5), '2', "'scale' of the adapter 'a' must be 1"],
  [
    'a comma for llama-server',
    `  - {id: base, engine: llama-server, source: /m.gguf}\n${adapter('a', 'base', '', "'/models/a,b.gguf'")}`,
    '2',
    "the path of the adapter 'a' has a comma",
  ],
])('%s is an error that names its place', (_, models, line, words) => {
  const parse = () => parseConfig(`models:\n${models}`, 'infer.yaml', traitsOf)
  expect(parse).toThrow(words)
  expect(parse).toThrow(new RegExp(`^infer\\.yaml:${line}:\\d+: `))
})

const modelsOf = (models: string): Model[] => parseConfig(`models:\n${models}`, 'infer.yaml', traitsOf).models
const registryOf = (models: string) => openRegistry({ models: modelsOf(models), defaults: () => [], traits: traitsOf })

describe('an adapter', () => {
  const models =
    adapter('a', 'base', ', price: {per_image: 3}, aliases: [x], profiles: {terse: {max_tokens: 2}}, description: A') +
    base +
    adapter('b', 'base') +
    adapter('off', 'base', ', enabled: false')
  const [model, ...others] = modelsOf(models)

  test('is no model of its own, but a name of its base', () => {
    expect(others).toEqual([])
    expect(namesOf(model!)).toEqual(['base', 'p', 'a', 'x', 'terse', 'b', 'off'])
    expect(
      modelNames(model!).map(({ name, kind, model: { id, price, description, enabled } }) => [
        name,
        kind,
        id,
        price.per_image,
        description,
        enabled,
      ]),
    ).toEqual([
      ['base', 'id', 'base', 1, undefined, true],
      ['p', 'profile', 'base', 1, undefined, true],
      ['a', 'adapter', 'base', 3, 'A', true],
      ['x', 'alias', 'base', 3, 'A', true],
      ['terse', 'profile', 'base', 3, 'A', true],
      ['b', 'adapter', 'base', 1, undefined, true],
      ['off', 'adapter', 'base', 1, undefined, false],
    ])
  })

  test('is named to the engine in place of the model, unless it is switched off', () => {
    const catalog = registryOf(models).catalog()
    const named = ['base', 'p', 'a', 'x', 'terse', 'b'].map(name => catalog.get(name)!.traits.upstreamId)
    expect(named).toEqual(['base', 'base', 'a', 'a', 'a', 'b'])
    expect(catalog.has('off')).toBe(false)
  })

  test('has fallbacks of its own, and not those of its base', () => {
    const own = (a: string, b: string) => {
      const other = '  - {id: other, source: /models/o.gguf}\n'
      const registry = registryOf(`${base.replace('profiles', `${a}profiles`)}${other}${adapter('a', 'base', b)}`)
      return [registry.hasFallbacks, registry.find('base')!.fallbacks?.length, registry.find('a')!.fallbacks?.length]
    }
    const fallbacks = 'fallbacks: [{model: other}]'
    expect(own(`${fallbacks}, `, '')).toEqual([true, 1, undefined])
    expect(own('', `, ${fallbacks}`)).toEqual([true, undefined, 1])
    expect(own('', '')).toEqual([false, undefined, undefined])
  })

  test('that has another base now is no longer offered for work that the first one accepted', () => {
    const { find } = registryOf(`${base}  - {id: other, source: /models/o.gguf}\n${adapter('a', 'other')}`)
    expect(modelOfWork(find, { modelId: 'base', requestedModel: 'a' })).toBeUndefined()
    expect(modelOfWork(find, { modelId: 'other', requestedModel: 'a' })?.adapter?.of).toBe('other')
  })
})

describe('another set of adapters', () => {
  const vllmOf = (more: string, ...sources: string[]) =>
    modelsOf(
      `  - {id: base, engine: vllm, source: org/m${more}}\n${sources.map(source => adapter(source.slice(1).replaceAll('/', '-'), 'base', '', source)).join('')}`,
    )[0]!
  test.each<[what: string, before: Model, after: Model, same: boolean]>([
    [
      'needs a new engine of llama.cpp',
      modelsOf(base + adapter('a', 'base'))[0]!,
      modelsOf(base + adapter('a', 'base') + adapter('b', 'base'))[0]!,
      false,
    ],
    [
      'with another scale, too',
      modelsOf(base + adapter('a', 'base'))[0]!,
      modelsOf(base + adapter('a', 'base', '', '/models/a.gguf', 0.5))[0]!,
      false,
    ],
    [
      'with only another price needs none',
      modelsOf(base + adapter('a', 'base'))[0]!,
      modelsOf(base + adapter('a', 'base', ', price: {per_image: 5}'))[0]!,
      true,
    ],
    ['without one of them needs none of vLLM', vllmOf('', '/l/a', '/l/b'), vllmOf('', '/l/a'), true],
    ['that its sandbox cannot read needs a new one', vllmOf('', '/l/a'), vllmOf('', '/l/a', '/l/b'), false],
    [
      'in a folder that it reads needs none',
      vllmOf(', sandbox_read: [/l]', '/l/a'),
      vllmOf(', sandbox_read: [/l]', '/l/a', '/l/b'),
      true,
    ],
    [
      'beside such a folder needs one',
      vllmOf(', sandbox_read: [/l]', '/l/a'),
      vllmOf(', sandbox_read: [/l]', '/l/a', '/long/b'),
      false,
    ],
    [
      'without a sandbox needs none',
      vllmOf(', sandbox: none', '/l/a'),
      vllmOf(', sandbox: none', '/l/a', '/l/b'),
      true,
    ],
    [
      'that is the first needs one, which has memory for it',
      vllmOf(', sandbox: none'),
      vllmOf(', sandbox: none', '/l/a'),
      false,
    ],
  ])('%s', (_, before, after, same) => expect(sameEngine(before, after)).toBe(same))
})
