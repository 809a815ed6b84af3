import { describe, expect, test } from 'vitest'
import { Model } from '../../../../core/models/model.ts'
import { type PeerModel, readListing } from '../../../../core/models/peers/listed-models.ts'
import { withPeerModels } from '../../../../core/models/peers/offered-peer-models.ts'

const listing = (...data: object[]) => JSON.stringify({ object: 'list', data })
const chat = { tasks: ['std/chat-completion'], status: 'warm' }
const price = { currency: 'EUR', input_per_million_tokens: 2, per_image: 0, image_prices: [] }

describe('the list of another infer', () => {
  test.each<[what: string, text: string, found: object | string]>([
    ['no JSON', '<html>', 'does not answer as an infer does'],
    ['no list', '{"data":{}}', 'does not answer as an infer does'],
    ['another currency', listing({ id: 'a', ...chat, price: { ...price, currency: 'USD' } }), 'has prices in USD'],
    ['unknown tasks only', listing({ id: 'a', status: 'warm', tasks: ['std/dream'] }), { models: [] }],
    [
      'an older infer',
      listing({ id: 'a', ...chat, tasks: [...chat.tasks, 'std/dream'] }),
      { models: [{ name: 'a', tasks: ['std/chat-completion'] }] },
    ],
    [
      'tasks that others imply',
      listing({ id: 'a', status: 'cold', tasks: ['slug/text-to-image', 'std/image-generation'] }),
      { models: [{ name: 'a', tasks: ['slug/text-to-image'] }] },
    ],
    [
      'features, context and price',
      listing({ id: 'a', ...chat, capabilities: ['tools', 'dreams'], context_length: 4096, region: 'EU', price }),
      {
        models: [
          {
            name: 'a',
            tasks: ['std/chat-completion'],
            features: ['tools'],
            contextLength: 4096,
            region: 'EU',
            price: { input_per_million_tokens: 2, per_image: 0 },
          },
        ],
      },
    ],
  ])('%s', (_, text, found) => {
    if (typeof found === 'string') expect(() => readListing(text, 'EUR')).toThrow(found)
    else expect(readListing(text, 'EUR')).toEqual({ ...found, loads: expect.any(Map) as unknown })
  })

  test('tells what waits for each model', () => {
    const { loads } = readListing(listing({ id: 'a', ...chat, queue_depth: 3, eta_seconds: 9 }), 'EUR')
    expect(loads.get('a')).toEqual({ status: 'warm', reason: null, waiting: 3, etaMs: 9_000 })
  })
})

test('a list of 200 models with prices is read in a moment', () => {
  const models = Array.from({ length: 200 }, (_, at) => ({ id: `model-${at}`, ...chat, price }))
  const text = listing(...models)
  const times = Array.from({ length: 10 }, () => {
    const began = performance.now()
    expect(readListing(text, 'EUR').models).toHaveLength(200)
    return performance.now() - began
  })
  expect(Math.min(...times)).toBeLessThan(50)
})

test('a name here wins, then that of the first peer', () => {
  const settings = { url: 'http://127.0.0.1:1', api_key_env: 'BOX' }
  const models = ['own', 'both', 'x'.repeat(128)].map(name => ({ name, tasks: ['std/embeddings' as const] }))
  const peers = ['one', 'two'].map(name => ({ name, settings, models }))
  const own = Model.parse({ id: 'own', source: '/m.gguf' })
  const offered = withPeerModels([own], peers, () => true).map(({ id, aliases = [] }) => [id, ...aliases])
  expect(offered).toEqual([['own'], ['one/own'], ['one/both', 'both'], ['two/own'], ['two/both']])
  expect(withPeerModels([own], peers, () => true)[2]).toMatchObject({
    engine: 'infer',
    upstream_id: 'both',
    url: settings.url,
    api_key_env: 'BOX',
  })
})

test('a peer has no name that is for models of another one', () => {
  const settings = { url: 'http://127.0.0.1:1' }
  const offer = (name: string, ...models: string[]) => ({
    name,
    settings,
    models: models.map(model => ({ name: model, tasks: ['std/embeddings' as const] })),
  })
  const peers = [offer('one', 'two/a', 'three/a'), offer('two', 'a')]
  const offered = withPeerModels([], peers, () => true).map(({ id, aliases = [] }) => [id, ...aliases])
  expect(offered).toEqual([['one/two/a'], ['one/three/a', 'three/a'], ['two/a', 'a']])
})

test('tasks that cannot be passed on are left out, and models that have no others', () => {
  const models: PeerModel[] = [
    { name: 'talks', tasks: ['slug/speech-to-video'] },
    { name: 'moves', tasks: ['slug/image-to-video', 'slug/video-interpolation'] },
  ]
  const peers = [{ name: 'one', settings: { url: 'http://127.0.0.1:1' }, models }]
  const offered = withPeerModels([], peers, ({ tasks }) => tasks.every(task => task === 'slug/image-to-video'))
  expect(offered.map(({ id, tasks }) => [id, tasks])).toEqual([['one/moves', ['slug/image-to-video']]])
})
