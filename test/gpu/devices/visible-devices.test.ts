import { expect, test } from 'vitest'
import type { Device } from '../../../gpu/devices/device.ts'
import { deviceFilesOf, visibilityVariables } from '../../../gpu/devices/visible-devices.ts'
import { deviceOf } from './_device.ts'

const [first, second] = ['0', '1'].map(cudaId => deviceOf(`gpu${cudaId}`, { kind: 'nvidia', cudaId })) as [
  Device,
  Device,
]
const slice = deviceOf('gpu0.0', { kind: 'nvidia', cudaId: 'MIG-7' })
const both = deviceOf('gpu0', { kind: 'nvidia', cudaId: '0', vulkanId: '2' })
const amd = deviceOf('gpu1', { kind: 'amd', hipId: '0', vulkanId: '0' })
const intel = deviceOf('gpu2', { kind: 'intel', levelZeroId: '1', vulkanId: '1' })
const other = deviceOf('gpu3', { kind: 'gpu', vulkanId: '4' })
const cpu = deviceOf('cpu', { kind: 'cpu' })
const mixed = [both, amd, intel]
const pciOrder = { ZE_ENABLE_PCI_ID_DEVICE_ORDER: '1' }

test.each<[title: string, all: Device[], own: Device[], variables: Record<string, string>, files: string[]]>([
  ['no card anywhere: nothing is hidden', [cpu], [], {}, []],
  ['NVIDIA', [first, second], [second], { CUDA_VISIBLE_DEVICES: '1' }, ['nvidia']],
  ['two of NVIDIA', [first, second], [first, second], { CUDA_VISIBLE_DEVICES: '0,1' }, ['nvidia']],
  ['a slice', [slice], [slice], { CUDA_VISIBLE_DEVICES: 'MIG-7' }, ['nvidia']],
  ['the processor beside NVIDIA', [first], [], { CUDA_VISIBLE_DEVICES: '' }, []],
  [
    'NVIDIA by Vulkan too',
    [both],
    [both],
    { CUDA_VISIBLE_DEVICES: '0', GGML_VK_VISIBLE_DEVICES: '2' },
    ['nvidia', 'dri'],
  ],
  [
    'AMD alone: CUDA_VISIBLE_DEVICES would hide it',
    [amd],
    [amd],
    { HIP_VISIBLE_DEVICES: '0', GGML_VK_VISIBLE_DEVICES: '0' },
    ['kfd', 'dri'],
  ],
  ['the processor beside AMD', [amd], [], { HIP_VISIBLE_DEVICES: '-1', GGML_VK_VISIBLE_DEVICES: '' }, []],
  ['a card of Vulkan alone', [other], [other], { GGML_VK_VISIBLE_DEVICES: '4' }, ['dri']],
  [
    'AMD of three makers',
    mixed,
    [amd],
    { CUDA_VISIBLE_DEVICES: '', HIP_VISIBLE_DEVICES: '0', GGML_VK_VISIBLE_DEVICES: '0' },
    ['kfd', 'dri'],
  ],
  [
    'Intel of three makers',
    mixed,
    [intel],
    {
      CUDA_VISIBLE_DEVICES: '',
      HIP_VISIBLE_DEVICES: '-1',
      ZE_AFFINITY_MASK: '1',
      ...pciOrder,
      GGML_VK_VISIBLE_DEVICES: '1',
    },
    ['dri'],
  ],
])('%s', (_, all, own, variables, files) => {
  expect(visibilityVariables(all, own)).toEqual(variables)
  expect(deviceFilesOf(own)).toEqual(files)
})
