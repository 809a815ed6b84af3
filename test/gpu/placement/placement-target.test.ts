import { expect, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import type { Device } from '../../../gpu/devices/device.ts'
import { devicesFor } from '../../../gpu/placement/placement-target.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'
import { deviceOf } from '../devices/_device.ts'

const nvidia = deviceOf('gpu0', { name: 'NVIDIA L4', kind: 'nvidia', cudaId: '0', vulkanId: '1' })
const amd = deviceOf('gpu1', { name: 'AMD Radeon RX 7900 XTX', kind: 'amd', hipId: '0', vulkanId: '0' })
const other = deviceOf('gpu2', { name: 'Other', vulkanId: '2' })
const cpu = deviceOf('cpu', { name: 'Processor', kind: 'cpu' })
const cuda = { gpu: 'cuda' as const, folder: '/backends' }
const vulkan = { gpu: 'vulkan' as const, folder: '/backends' }
const cannot = "The engine 'vllm' of 'm' cannot use gpu2 (Other)."

test.each<
  [
    title: string,
    engine: string,
    devices: unknown,
    cards: Device[],
    backend: typeof cuda | typeof vulkan | undefined,
    expected: object,
  ]
>([
  [
    'vLLM uses cards of CUDA and ROCm',
    'vllm',
    1,
    [nvidia, amd, other],
    undefined,
    { kind: 'gpu', only: ['gpu0', 'gpu1'] },
  ],
  ['and none of Vulkan alone, which is said', 'vllm', 1, [other], undefined, { kind: 'gpu', impossible: cannot }],
  [
    'also where it is bound to one',
    'vllm',
    ['gpu2'],
    [nvidia, other],
    undefined,
    { only: ['gpu2'], impossible: cannot },
  ],
  ['an engine that needs no GPU then runs on the processor', 'python', 1, [other], undefined, { kind: 'cpu' }],
  ['llama-server may be built for Vulkan', 'llama-server', 1, [other], undefined, { kind: 'gpu', devices: 1 }],
  ['the built-in engine with CUDA', 'gguf', 1, [nvidia, amd, other], cuda, { only: ['gpu0'] }],
  ['the built-in engine with Vulkan', 'gguf', 2, [nvidia, amd, other], vulkan, { kind: 'gpu', devices: 2 }],
  [
    'Vulkan without the number of one of several',
    'gguf',
    1,
    [{ ...nvidia, vulkanId: undefined }, amd],
    vulkan,
    { only: ['gpu1'] },
  ],
  ['and of a single card', 'gguf', 1, [{ ...nvidia, vulkanId: undefined }], vulkan, { kind: 'gpu', devices: 1 }],
  ['no card', 'gguf', 1, [], undefined, { kind: 'cpu' }],
])('%s', (_, engine, devices, cards, backend, expected) => {
  const model = Model.parse({ id: 'm', engine, source: '/m', tasks: ['std/completion'], devices })
  const found = devicesFor(model, presetOf(model).runsOn, [...cards, cpu], { backend })
  expect(found).toMatchObject(expected)
  if (!('only' in expected)) expect(found).not.toHaveProperty('only')
  if (!('impossible' in expected)) expect(found).not.toHaveProperty('impossible')
})
