import { expect, test } from 'vitest'
import { defaultModels, offeredModels } from '../../../core/models/defaults.ts'
import { Model } from '../../../core/models/model.ts'
import { openRegistry } from '../../../core/models/registry.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'

const toyIds = defaultModels().map(({ id }) => id)
const own = Model.parse({ id: 'own', source: '/m.gguf' })

test.each([
  ['no models', { models: [] }, toyIds],
  ['no models and no toys', { models: [], toys: false }, []],
  ['models', { models: [own] }, ['own']],
  ['models and toys', { models: [own], toys: true }, ['own', ...toyIds]],
  [
    'a model with the id of a toy',
    { models: [{ ...own, id: 'infer/tiny-chat' }], toys: true },
    ['infer/tiny-chat', ...toyIds.filter(id => id !== 'infer/tiny-chat')],
  ],
  [
    'a model with the slug of a toy',
    { models: [{ ...own, slug: 'demo' }], toys: true },
    ['own', ...toyIds.filter(id => id !== 'infer/demo')],
  ],
])('%s', (_, config, ids) => expect(offeredModels(config).map(({ id }) => id)).toEqual(ids))

test('a running server takes up a change of `toys`', () => {
  const registry = openRegistry({ models: [own], toys: true, defaults: defaultModels, traits: traitsOf })
  const toy = registry.find('infer/tiny-chat')
  expect(toy).toBeDefined()
  expect(registry.replace([own], true)).toEqual({ added: [], removed: [], replaced: [], updated: [] })
  expect(registry.find('infer/tiny-chat')).toBe(toy)
  expect(registry.replace([own], false).removed).toEqual(toyIds)
})
