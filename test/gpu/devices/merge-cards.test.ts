import { describe, expect, test } from 'vitest'
import type { Device } from '../../../gpu/devices/device.ts'
import { type FoundCards, mergeCards } from '../../../gpu/devices/merge-cards.ts'
import { devicesOf, fields, parseCards } from '../../../gpu/devices/nvidia.ts'
import { makerOf, parseListing, productName, type VulkanDevice } from '../../../gpu/devices/vulkan.ts'
import { cardLine } from '../../fixtures/nvidia-smi.ts'

const GiB = 2 ** 30
const mainBytes = 128 * GiB

const nvidia = (...lines: Parameters<typeof cardLine>[0][]): Device[] =>
  devicesOf(parseCards(lines.map(line => cardLine(line)).join('\n'), fields), [], mainBytes)
const amd = (of: Partial<Device> = {}): Omit<Device, 'id'> => ({
  ...nvidia({})[0]!,
  kind: 'amd',
  name: 'AMD Radeon RX 7900 XTX',
  cudaId: null,
  uuid: null,
  hipId: '0',
  pci: '0000:03:00.0',
  ...of,
})
const vulkan = (index: number, name: string, of: Partial<VulkanDevice> = {}): VulkanDevice => ({
  index,
  name,
  driver: 'driver',
  isUnified: false,
  totalBytes: 8 * GiB,
  pci: null,
  ...of,
})
const merged = (of: Partial<FoundCards>) =>
  mergeCards({ nvidia: [], addresses: new Map(), amd: [], vulkan: [], mainBytes, ...of })
const ids = (devices: readonly Device[]) =>
  devices.map(({ id, kind, cudaId, hipId, levelZeroId, vulkanId }) =>
    [id, kind, cudaId ?? '-', hipId ?? '-', levelZeroId ?? '-', vulkanId ?? '-'].join(' '),
  )

describe('the cards of a machine', () => {
  const two = nvidia({ uuid: 'GPU-a', name: 'NVIDIA L4' }, { index: 1, uuid: 'GPU-b', name: 'NVIDIA L4' })
  const addresses = new Map([
    ['GPU-a', '0000:01:00.0'],
    ['GPU-b', '0000:81:00.0'],
  ])
  test.each<[title: string, found: Partial<FoundCards>, expected: string[]]>([
    ['none', {}, []],
    [
      'Vulkan alone, with NVIDIA without CUDA',
      { vulkan: [vulkan(0, 'NVIDIA GeForce RTX 3090 (NVK GA102)'), vulkan(2, 'llvmpipe (LLVM 15.0.6, 256 bits)')] },
      ['gpu0 nvidia - - - 0', 'gpu1 gpu - - - 2'],
    ],
    [
      'a card that nvidia-smi and Vulkan see is one, by address',
      {
        nvidia: two,
        addresses,
        vulkan: [vulkan(0, 'NVIDIA L4', { pci: '0000:81:00.0' }), vulkan(1, 'NVIDIA L4', { pci: '0000:01:00.0' })],
      },
      ['gpu0 nvidia 0 - - 1', 'gpu1 nvidia 1 - - 0'],
    ],
    [
      'and without addresses by name, in order',
      { nvidia: two, vulkan: [vulkan(3, 'NVIDIA L4'), vulkan(4, 'NVIDIA L4')] },
      ['gpu0 nvidia 0 - - 3', 'gpu1 nvidia 1 - - 4'],
    ],
    [
      'three makers: NVIDIA keeps its numbers, the next are for AMD, then for Vulkan; Intel counts by address',
      {
        nvidia: nvidia({ index: 2, uuid: 'GPU-a', name: 'NVIDIA L4' }),
        amd: [amd()],
        vulkan: [
          vulkan(0, 'Intel(R) Arc(tm) A770 Graphics (DG2)', { pci: '0000:51:00.0' }),
          vulkan(1, 'Intel(R) Arc(tm) A380 Graphics (DG2)', { pci: '0000:41:00.0' }),
          vulkan(2, 'AMD Radeon RX 7900 XTX (RADV NAVI31)', { pci: '0000:03:00.0' }),
          vulkan(3, 'NVIDIA L4'),
        ],
      },
      ['gpu2 nvidia 2 - - 3', 'gpu3 amd - 0 - 2', 'gpu4 intel - - 1 0', 'gpu5 intel - - 0 1'],
    ],
    [
      'a card in MIG mode has no number in Vulkan',
      {
        nvidia: [{ ...two[0]!, id: 'gpu0.0', name: 'NVIDIA L4 MIG 1g.5gb', cudaId: 'MIG-7' }],
        vulkan: [vulkan(0, 'NVIDIA L4')],
      },
      ['gpu0.0 nvidia MIG-7 - - -'],
    ],
  ])('%s', (_, found, expected) => expect(ids(merged(found))).toEqual(expected))

  test('unified memory is that of the machine: GB10 by nvidia-smi, Strix Halo and Jetson by Vulkan', () => {
    const unknown = { 'memory.total': '[N/A]', 'memory.used': '[N/A]', name: 'NVIDIA GB10' }
    const [gb10] = merged({ nvidia: nvidia(unknown) })
    expect(gb10).toMatchObject({ id: 'gpu0', totalBytes: mainBytes, usedBytes: null, isUnified: true, cudaId: '0' })
    const halo = vulkan(0, 'AMD Radeon 8060S (RADV STRIX_HALO)', { isUnified: true, pci: '0000:03:00.0' })
    expect(merged({ vulkan: [halo] })).toMatchObject([
      { name: 'AMD Radeon 8060S', totalBytes: mainBytes, isUnified: true },
    ])
    // The driver shows the part that the firmware keeps free for the card.
    expect(merged({ amd: [amd({ totalBytes: GiB / 2, usedBytes: 0 })], vulkan: [halo] })).toMatchObject([
      { id: 'gpu0', hipId: '0', vulkanId: '0', totalBytes: mainBytes, usedBytes: null, isUnified: true },
    ])
    // A card whose memory cannot be read for another reason is not usable.
    expect(nvidia({ ...unknown, 'memory.total': '[Unknown Error]' })).toEqual([])
    expect(nvidia({ ...unknown, 'memory.used': '4' })).toEqual([])
  })
})

describe("llama.cpp's log", () => {
  const log = `ggml_vulkan: Found 2 Vulkan devices:
ggml_vulkan: 0 = AMD Radeon RX 7900 XTX (RADV NAVI31) (radv) | uma: 0 | fp16: 1 | bf16: 0 | warp size: 64
ggml_vulkan: 1 = llvmpipe (LLVM 15.0.6, 256 bits) (llvmpipe) | uma: 1 | fp16: 1 | warp size: 8
load_backend: loaded Vulkan backend
`
  const addresses = `llama_prepare_model_devices: using device Vulkan0 (AMD Radeon RX 7900 XTX (RADV NAVI31)) (0000:0A:00.0) - 24000 MiB free
llama_prepare_model_devices: using device Vulkan1 (llvmpipe (LLVM 15.0.6, 256 bits)) (unknown id) - 2048 MiB free
`
  test('has the devices, and after the load of a model their addresses', () => {
    const first = { name: 'AMD Radeon RX 7900 XTX (RADV NAVI31)', driver: 'radv', isUnified: false }
    expect(parseListing(log, undefined)).toMatchObject([{ ...first, totalBytes: 0, pci: null }, { isUnified: true }])
    expect(parseListing(log + addresses, undefined)).toEqual([
      { ...first, totalBytes: 24000 * 2 ** 20, pci: '0000:0a:00.0' },
      { name: 'llvmpipe (LLVM 15.0.6, 256 bits)', driver: 'llvmpipe', isUnified: true, totalBytes: 2 * GiB, pci: null },
    ])
    expect(parseListing(log + addresses, 7)[0]).toMatchObject({ totalBytes: 7 })
    expect(parseListing('ggml_vulkan: No devices found.\n', 0)).toEqual([])
  })
  test.each([
    ['AMD Radeon RX 7900 XTX (RADV NAVI31)', 'amd', 'AMD Radeon RX 7900 XTX'],
    ['NVIDIA GeForce RTX 3090 (NVK GA102)', 'nvidia', 'NVIDIA GeForce RTX 3090'],
    ['Intel(R) Arc(tm) A770 Graphics (DG2)', 'intel', 'Intel(R) Arc(tm) A770 Graphics (DG2)'],
    ['llvmpipe (LLVM 15.0.6, 256 bits)', 'gpu', 'llvmpipe (LLVM 15.0.6, 256 bits)'],
  ])('%s', (name, maker, product) => expect([makerOf(name), productName(name)]).toEqual([maker, product]))
})
