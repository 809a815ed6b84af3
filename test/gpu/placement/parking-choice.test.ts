import { expect, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import { parkingChoice } from '../../../gpu/placement/parking-choice.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'

const GiB = 2 ** 30
const nvidia = { cudaId: '0' }

test.each<[name: string, model: object, of: object, expected: number | RegExp]>([
  ['vLLM on an NVIDIA GPU keeps its weights', {}, {}, 1],
  ['level 2 by its setting, with little main memory', { parking: 2 }, { budget: GiB }, 2],
  ['another engine cannot', { engine: 'tei' }, {}, /'tei' cannot be parked/],
  ['its setting forbids it', { parking: 'off' }, {}, /parking: off/],
  ['not on the processor', {}, { cards: [] }, /Only engines on GPUs/],
  [
    'not where the memory is that of the processor',
    {},
    { cards: [{ ...nvidia, isUnified: true }] },
    /no memory of its/,
  ],
  ['not by itself on other GPUs', {}, { cards: [{ cudaId: null }] }, /Set 'parking: 1'/],
  ['on other GPUs by its setting', { parking: 1 }, { cards: [{ cudaId: null }] }, 1],
  ['not while it is kept loaded', { replicas: { min: 1, max: 1 } }, {}, /replicas\.min/],
  ['not above the limit', {}, { budget: 10 * GiB }, /use 12\.0 GiB.*may use 10\.0 GiB together/],
])('%s', (_name, more, of, expected) => {
  const model = Model.parse({ id: 'm', engine: 'vllm', source: '/m', tasks: ['std/embeddings'], ...more })
  const facts = { model, preset: presetOf(model), cards: [nvidia], weights: 9 * GiB, budget: 32 * GiB, ...of }
  const choice = parkingChoice(facts)
  if (typeof expected === 'number') expect(choice.level).toBe(expected)
  else expect(choice).toMatchObject({ level: null, reason: expect.stringMatching(expected) })
})
