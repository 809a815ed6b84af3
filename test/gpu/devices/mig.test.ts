import { describe, expect, test } from 'vitest'
import { parseSliceMemory, parseSlices } from '../../../gpu/devices/mig.ts'
import { devicesOf, fields, parseCards } from '../../../gpu/devices/nvidia.ts'
import { cardLine } from '../../fixtures/nvidia-smi.ts'

const MiB = 2 ** 20
const listing = `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaa)
  MIG 3g.20gb     Device  0: (UUID: MIG-111)
  MIG 1g.5gb+me   Device  1: (UUID: MIG-222)
GPU 1: NVIDIA L4 (UUID: GPU-bbb)
GPU 2: NVIDIA H200 (UUID: GPU-ccc)
  MIG 1g.18gb Device 0: (UUID: MIG-GPU-ccc/1/0)
`
const slice = (index: number, total: string, used: string) => `
      <mig_device>
        <index>${index}</index>
        <gpu_instance_id>${index + 1}</gpu_instance_id>
        <compute_instance_id>0</compute_instance_id>
        <fb_memory_usage>
          <total>${total}</total>
          <reserved>0 MiB</reserved>
          <used>${used}</used>
          <free>1 MiB</free>
        </fb_memory_usage>
        <bar1_memory_usage>
          <total>32767 MiB</total>
          <used>7 MiB</used>
        </bar1_memory_usage>
      </mig_device>`
const card = (uuid: string, slices: string) => `
  <gpu id="00000000:55:00.0">
    <product_name>NVIDIA A100-SXM4-40GB</product_name>
    <mig_mode><current_mig>Enabled</current_mig></mig_mode>
    <mig_devices>${slices}
    </mig_devices>
    <uuid>${uuid}</uuid>
    <fb_memory_usage><total>40960 MiB</total><used>Insufficient Permissions</used></fb_memory_usage>
    <utilization><gpu_util>N/A</gpu_util></utilization>
  </gpu>`
const log = (cards: string) =>
  `<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>${cards}\n</nvidia_smi_log>\n`

describe('parseSliceMemory', () => {
  const cases: [name: string, xml: string, expected: [string, object][]][] = [
    [
      'slices of several cards',
      log(
        card('GPU-aaa', slice(0, '19968 MiB', '298 MiB') + slice(1, '4864 MiB', '0 MiB')) +
          card('GPU-bbb', '\n      None') +
          card('GPU-ccc', slice(0, '16384 MiB', '13 MiB')),
      ),
      [
        ['GPU-aaa 0', { totalBytes: 19968 * MiB, usedBytes: 298 * MiB }],
        ['GPU-aaa 1', { totalBytes: 4864 * MiB, usedBytes: 0 }],
        ['GPU-ccc 0', { totalBytes: 16384 * MiB, usedBytes: 13 * MiB }],
      ],
    ],
    [
      'what is used may not be read',
      log(card('GPU-aaa', slice(0, '4864 MiB', 'N/A'))),
      [['GPU-aaa 0', { totalBytes: 4864 * MiB, usedBytes: null }]],
    ],
    ['a slice without a size', log(card('GPU-aaa', slice(0, 'Insufficient Permissions', '1 MiB'))), []],
    ['a card that has no UUID', log(card('N/A', slice(0, '4864 MiB', '1 MiB'))), []],
    ['text that was cut off', log(card('GPU-aaa', slice(0, '4864 MiB', '1 MiB'))).slice(0, 600), []],
    ['something else', 'Failed to initialize NVML: Unknown Error', []],
    ['nothing', '', []],
  ]
  test.each(cases)('%s', (_name, xml, expected) => {
    expect([...parseSliceMemory(xml)]).toEqual(expected)
  })
})

describe('parseSlices', () => {
  test('without measured memory it is estimated from the profile, conservatively', () => {
    expect(parseSlices(listing).map(({ card, uuid, profile, usedBytes }) => [card, profile, uuid, usedBytes])).toEqual([
      [0, '3g.20gb', 'MIG-111', null],
      [0, '1g.5gb+me', 'MIG-222', null],
      [2, '1g.18gb', 'MIG-GPU-ccc/1/0', null],
    ])
    expect(parseSlices(listing)[0]!.totalBytes).toBe(Math.floor(20 * 1024 * MiB * 0.95))
    expect(parseSlices('GPU 0: NVIDIA H200 (UUID: GPU-1)\n')).toEqual([])
  })

  test('measured memory precedes the estimate, slice by slice', () => {
    const memory = parseSliceMemory(
      log(card('GPU-aaa', slice(1, '4864 MiB', '13 MiB')) + card('GPU-ccc', slice(0, '16384 MiB', 'N/A'))),
    )
    expect(parseSlices(listing, memory)).toMatchObject([
      { uuid: 'MIG-111', totalBytes: Math.floor(20 * 1024 * MiB * 0.95), usedBytes: null },
      { uuid: 'MIG-222', totalBytes: 4864 * MiB, usedBytes: 13 * MiB },
      { uuid: 'MIG-GPU-ccc/1/0', totalBytes: 16384 * MiB, usedBytes: null },
    ])
  })
})

test('a GPU in MIG mode is offered as its slices, named and pinned one by one, without readings of the GPU', () => {
  const cards = parseCards(
    [
      cardLine({ uuid: 'GPU-aaa', name: 'A100', 'mig.mode.current': 'Enabled' }),
      cardLine({ index: 1, uuid: 'GPU-bbb', name: 'L4' }),
    ].join('\n'),
    fields,
  )
  const devices = devicesOf(cards, parseSlices(listing))
  expect(devices).toMatchObject([
    { id: 'gpu0.0', cudaId: 'MIG-111', name: 'A100 MIG 3g.20gb', uuid: null, temperatureCelsius: null },
    { id: 'gpu0.1', cudaId: 'MIG-222' },
    { id: 'gpu1', cudaId: '1', uuid: 'GPU-bbb', temperatureCelsius: 31 },
  ])
  expect(devicesOf(cards.slice(0, 1), [])).toEqual([])
})

test('in a container without access to the memory of the whole GPU, its slices are still offered', () => {
  const hidden = '[Insufficient Permissions]'
  const line = cardLine({
    'mig.mode.current': 'Enabled',
    'memory.total': hidden,
    'memory.used': hidden,
    'utilization.gpu': '[N/A]',
  })
  expect(devicesOf(parseCards(line, fields), parseSlices(listing)).map(({ id }) => id)).toEqual(['gpu0.0', 'gpu0.1'])
})
