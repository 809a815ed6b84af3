import { describe, expect, test } from 'vitest'
import {
  devicesOf,
  fewFields,
  fields,
  meaning,
  parseCards,
  parseSlices,
  queryArguments,
  type Run,
} from '../../../gpu/devices/nvidia.ts'

const MiB = 2 ** 20
const h200 = '0, GPU-5f6f, NVIDIA H200, 580.159.03, 9.0, 143771, 4, Disabled'

describe('parseCards', () => {
  const cases: [name: string, csv: string, of: readonly string[], expected: object[]][] = [
    [
      'one card',
      `${h200}\n`,
      fields,
      [
        {
          index: 0,
          name: 'NVIDIA H200',
          driver: '580.159.03',
          totalBytes: 143771 * MiB,
          usedBytes: 4 * MiB,
          mig: false,
        },
      ],
    ],
    [
      'several cards, in the order of the bus',
      `${h200}\n1, GPU-2, NVIDIA L4, 580.1, 8.9, 23034, 100, [N/A]\n`,
      fields,
      [{ index: 0 }, { index: 1, name: 'NVIDIA L4', usedBytes: 100 * MiB, mig: false }],
    ],
    [
      'values that the driver does not know become null',
      '0, GPU-1, NVIDIA A10, [Not Supported], [N/A], 23028, [Unknown Error], N/A',
      fields,
      [{ driver: null, computeCapability: null, usedBytes: null, mig: false }],
    ],
    [
      'the short list of an old driver',
      '0, GPU-1, Tesla K80, 11441, 0, 418.87',
      fewFields,
      [{ name: 'Tesla K80', driver: '418.87', totalBytes: 11441 * MiB }],
    ],
    ['windows line ends', `${h200}\r\n`, fields, [{ index: 0, mig: false }]],
    ['a card without memory cannot be used', '0, GPU-1, NVIDIA X, 1, 1, [N/A], 0, Disabled', fields, []],
    ['a card that is lost cannot be used', '[GPU is lost], GPU-1, X, 1, 1, 100, 0, Disabled', fields, []],
    ['a line with another number of values', '0, GPU-1, NVIDIA X', fields, []],
    ['nothing', '', fields, []],
    ['noise', 'Failed to initialize NVML: Driver/library version mismatch', fields, []],
    ['MIG on', '0, GPU-1, NVIDIA A100, 550, 8.0, 40960, 0, Enabled', fields, [{ mig: true }]],
  ]
  test.each(cases)('%s', (_name, csv, of, expected) => {
    expect(parseCards(csv, of)).toMatchObject(expected)
    expect(parseCards(csv, of)).toHaveLength(expected.length)
  })
})

const listing = `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaa)
  MIG 3g.20gb     Device  0: (UUID: MIG-111)
  MIG 1g.5gb+me   Device  1: (UUID: MIG-222)
GPU 1: NVIDIA L4 (UUID: GPU-bbb)
GPU 2: NVIDIA H200 (UUID: GPU-ccc)
  MIG 1g.18gb Device 0: (UUID: MIG-GPU-ccc/1/0)
`

test('slices of MIG cards are read with their card and a cautious size', () => {
  expect(parseSlices(listing).map(({ card, uuid, profile }) => [card, profile, uuid])).toEqual([
    [0, '3g.20gb', 'MIG-111'],
    [0, '1g.5gb+me', 'MIG-222'],
    [2, '1g.18gb', 'MIG-GPU-ccc/1/0'],
  ])
  expect(parseSlices(listing)[0]!.totalBytes).toBeLessThan(20 * 2 ** 30)
  expect(parseSlices('GPU 0: NVIDIA H200 (UUID: GPU-1)\n')).toEqual([])
})

test('a card in MIG mode is offered as its slices, named and pinned one by one', () => {
  const cards = parseCards(
    '0, GPU-aaa, A100, 1, 8.0, 40960, 5, Enabled\n1, GPU-bbb, L4, 1, 8.9, 23034, 7, Disabled',
    fields,
  )
  expect(devicesOf(cards, parseSlices(listing)).map(({ id, cudaId }) => [id, cudaId])).toEqual([
    ['gpu0.0', 'MIG-111'],
    ['gpu0.1', 'MIG-222'],
    ['gpu1', '1'],
  ])
  expect(devicesOf(cards.slice(0, 1), [])).toEqual([])
})

describe('meaning of a run', () => {
  const run = (of: Partial<Run>): Run => ({ exitCode: 0, timedOut: false, stdout: '', stderr: '', ...of })
  const cases: [name: string, run: Run, expected: object | null][] = [
    ['cards', run({ stdout: h200 }), null],
    ['not installed', run({ exitCode: undefined, errorCode: 'ENOENT' }), { broken: false, again: false }],
    ['not executable', run({ exitCode: undefined, errorCode: 'EACCES' }), { broken: true }],
    ['hanging driver', run({ exitCode: undefined, timedOut: true }), { broken: true }],
    ['exit 6: no cards', run({ exitCode: 6, stdout: 'No devices were found' }), { broken: false }],
    ['no cards, but exit 0', run({ stdout: 'No devices were found' }), { broken: false }],
    [
      'exit 9: driver',
      run({ exitCode: 9, stderr: "NVIDIA-SMI has failed because it couldn't communicate" }),
      { broken: true },
    ],
    [
      'exit 2: unknown field',
      run({ exitCode: 2, stdout: 'Field "mig.mode.current" is not a valid field' }),
      { again: true },
    ],
    ['exit 12: no library', run({ exitCode: 12 }), { broken: true }],
    ['exit 15: off the bus', run({ exitCode: 15 }), { broken: true }],
    [
      'another',
      run({ exitCode: 255, stderr: 'What?\nmore' }),
      { broken: true, reason: 'nvidia-smi failed (255): What?.' },
    ],
  ]
  test.each(cases)('%s', (_name, of, expected) => {
    if (expected) expect(meaning(of)).toMatchObject(expected)
    else expect(meaning(of)).toBeNull()
  })
})

test('the query asks for plain numbers', () => {
  expect(queryArguments(['index', 'name'])).toEqual(['--query-gpu=index,name', '--format=csv,noheader,nounits'])
})
