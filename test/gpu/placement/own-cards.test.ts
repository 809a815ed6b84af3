import { describe, expect, test } from 'vitest'
import { type Device, noReadings } from '../../../gpu/devices/device.ts'
import { namedCards } from '../../../gpu/placement/named-cards.ts'
import { type CardRules, ownCards, unknownCards } from '../../../gpu/placement/own-cards.ts'

const GiB = 2 ** 30
const card = (id: string, uuid: string | null, cudaId = id.slice(3)): Device => ({
  id,
  kind: 'nvidia',
  name: `Card ${id}`,
  totalBytes: 24 * GiB,
  usedBytes: 0,
  ...noReadings,
  cudaId,
  uuid,
  cores: null,
})
const cards = [card('gpu0', 'GPU-aaaa'), card('gpu1', 'GPU-bbbb'), card('gpu2', 'GPU-cccc')]
const slices = [card('gpu0.0', null, 'MIG-1111'), card('gpu0.1', null, 'MIG-2222'), card('gpu1', 'GPU-bbbb')]

const own = (devices: Device[], visible: string | undefined, settings?: CardRules['devices']) =>
  ownCards(
    { devices, reason: null, broken: false },
    { environment: { CUDA_VISIBLE_DEVICES: visible }, devices: settings },
  )

describe('the cards that infer may use', () => {
  const cases: [
    what: string,
    devices: Device[],
    visible: string | undefined,
    own: string,
    settings?: CardRules['devices'],
  ][] = [
    ['all without a rule', cards, undefined, 'gpu0 gpu1 gpu2'],
    ['those of CUDA_VISIBLE_DEVICES, in its order', cards, '2,0', 'gpu2 gpu0'],
    ['by UUID, and by its beginning', cards, 'GPU-cccc,gpu-aa', 'gpu2 gpu0'],
    ['with spaces', cards, ' 0 , 1 ', 'gpu0 gpu1'],
    ['none where it is empty', cards, '', ''],
    ['none behind an entry that can name no card, as for CUDA', cards, '1,-1,0', 'gpu1'],
    ['those behind a card that is missing', cards, '7,1,GPU-ffff,0', 'gpu1 gpu0'],
    ['none for a word', cards, 'NoDevFiles', ''],
    ['a slice', slices, 'MIG-2222', 'gpu0.1'],
    ['all slices of a card by its number', slices, '0', 'gpu0.0 gpu0.1'],
    ['those that the configuration names', cards, undefined, 'gpu1 gpu0', [1, 'GPU-aaaa']],
    ['by name', cards, undefined, 'gpu2', ['Card gpu2']],
    ['those of both', cards, '0,1', 'gpu1', [1, 2]],
    ['none by an empty list', cards, undefined, '', []],
  ]
  test.each(cases)('%s', (_what, devices, visible, ids, settings) =>
    expect(
      own(devices, visible, settings)
        .devices.map(({ id }) => id)
        .join(' '),
    ).toBe(ids),
  )

  test('the others are left with the reason', () => {
    expect(own(cards, '0,2', [0]).left?.map(({ reason }) => reason)).toEqual([
      'gpu1 is left to others (CUDA_VISIBLE_DEVICES=0,2).',
      'gpu2 is left to others (devices in infer.yaml).',
    ])
    expect(own(cards, undefined).left).toBeUndefined()
    expect(own(cards.slice(0, 1), '')).toMatchObject({
      broken: false,
      reason: 'No GPU is used: gpu0 is left to others (CUDA_VISIBLE_DEVICES=).',
    })
  })

  test('a part of the memory of a card, as an amount or a share', () => {
    const budgets = own(cards, undefined, [{ device: 0, memory: 12 * GiB }, { device: 'gpu1', memory: '25%' }, 2])
    expect(budgets.devices.map(({ budget }) => budget)).toEqual([12 * GiB, 6 * GiB, undefined])
  })

  test('a model that is to use a card of others is told so', () => {
    const { devices, left } = own(cards, '0')
    expect(namedCards('m', [1], devices, left)).toEqual({
      missing: "'m' is to use the GPU '1' (devices). gpu1 is left to others (CUDA_VISIBLE_DEVICES=0).",
    })
    expect(unknownCards(cards, [0, { device: 'GPU-dddd', memory: '1%' }])).toEqual([
      expect.stringMatching(/GPU 'GPU-dddd', which this machine does not have/),
    ])
  })
})
