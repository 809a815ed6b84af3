import { expect, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import { parkingChoice, parkingText } from '../../../gpu/placement/parking-choice.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'
import { noDurations } from '../../../gpu/residency/model-state.ts'

const GiB = 2 ** 30
const nvidia = { cudaId: '0' }

test.each<[name: string, model: object, of: object, expected: number | RegExp]>([
  ['vLLM on an NVIDIA GPU keeps its weights', {}, {}, 1],
  ['not without a setting', { parking: undefined }, {}, /only with 'parking: auto'/],
  ['level 2 by its setting, with little main memory', { parking: 2 }, { budget: GiB }, 2],
  ['SGLang keeps its weights too', { engine: 'sglang' }, { budget: 11 * GiB }, 1],
  ['another engine cannot', { engine: 'tei', parking: undefined }, {}, /'tei' cannot be parked/],
  ['its setting forbids it', { parking: 'off' }, {}, /only with 'parking: auto'/],
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
  const model = Model.parse({
    id: 'm',
    engine: 'vllm',
    source: '/m',
    tasks: ['std/embeddings'],
    parking: 'auto',
    ...more,
  })
  const facts = { model, preset: presetOf(model), cards: [nvidia], weights: 9 * GiB, budget: 32 * GiB, ...of }
  const choice = parkingChoice(facts)
  if (typeof expected === 'number') expect(choice.level).toBe(expected)
  else expect(choice).toMatchObject({ level: null, reason: expect.stringMatching(expected) })
})

test('an engine with adapters is not parked, because it loses them', () => {
  const model = {
    ...Model.parse({ id: 'm', engine: 'vllm', source: '/m', parking: 1 }),
    adapters: [{ id: 'a', source: '/a', scale: 1, enabled: true }],
  }
  const facts = { model, preset: presetOf(model), cards: [nvidia], weights: GiB, budget: 32 * GiB }
  expect(parkingChoice(facts)).toMatchObject({ level: null, reason: expect.stringMatching(/It has adapters/) })
})

const parked = { level: 1 as const, memory: { hostBytes: 12 * GiB, cardBytes: 1.5 * GiB } }
const measured = { loadMs: 20_000, runMs: null, parkMs: 500, wakeMs: 2_000 }

test.each<[name: string, choice: Parameters<typeof parkingText>[0], of: object, says: RegExp]>([
  [
    'what it keeps',
    parked,
    {},
    /its engine is parked and keeps 12\.0 GiB of the main memory and 1\.5 GiB of each GPU\.$/,
  ],
  [
    'what was measured',
    parked,
    { durations: measured },
    /Parking took about a second, waking about 2 s, a start about 20 s\.$/,
  ],
  [
    'that a start is faster',
    parked,
    { durations: { ...measured, loadMs: 2_400 } },
    /^When .* its engine ends\. Parking took about a second, waking about 2 s, a start about 2 s\.$/,
  ],
  [
    'that it has failed',
    parked,
    { parkingFault: 'It could not be woken.' },
    /its engine ends\. It could not be woken\.$/,
  ],
  ['why it is not parked', { level: null, reason: 'It has adapters.' }, {}, /its engine ends\. It has adapters\.$/],
])('the text says %s', (_name, choice, of, says) => {
  expect(parkingText(choice, { durations: noDurations, parkingFault: null, ...of })).toMatch(says)
})
