import { expect, test } from 'vitest'
import { checkParking, type ParkingFacts } from '../../../cli/doctor/parking.ts'

const vllm = { engine: 'vllm', path: '/engines/vllm/bin/vllm' }
const here: ParkingFacts = {
  cards: [{ id: 'gpu0', cudaId: '0' }],
  engines: [vllm, { engine: 'tei', path: '/bin/tei' }],
  models: [],
  budget: 2 ** 33,
}
const model = { id: 'm', enabled: true, engine: 'vllm' }

test.each<[name: string, of: Partial<ParkingFacts>, says: RegExp]>([
  ['an engine that no model parks', {}, /^vllm can be parked, with 8\.0 GiB .*no model sets it \('parking: auto'/],
  [
    'the models that park theirs',
    {
      models: [
        { ...model, parking: 'auto' },
        { ...model, id: 'n', parking: 1 },
      ],
    },
    /set for m, n$/,
  ],
  ['a model with parking: off', { models: [{ ...model, parking: 'off' }] }, /no model sets it/],
  ['a model that is switched off', { models: [{ ...model, enabled: false, parking: 1 }] }, /no model sets it/],
  ['the setting for other GPUs', { cards: [{ id: 'gpu0', cudaId: null }] }, /'parking: 1'/],
  ['that none is installed', { engines: [{ ...vllm, path: undefined }] }, /no engine here can be parked: vllm/],
  ['that the limit forbids it', { budget: 0 }, /vllm could be parked, but limits\.parking_memory is 0/],
  [
    'that nothing would be freed',
    { cards: [{ id: 'gpu0', cudaId: '0', isUnified: true }] },
    /memory of the GPU is that/,
  ],
])('infer doctor says: %s', (_name, of, says) => {
  const finding = checkParking({ ...here, ...of })!
  expect(finding.state).toBe('fine')
  expect(finding.detail).toMatch(says)
})

test('infer doctor says nothing of parking on a machine without a GPU', () => {
  expect(checkParking({ ...here, cards: [] })).toBeUndefined()
})
