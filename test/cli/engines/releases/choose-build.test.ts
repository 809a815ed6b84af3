import { describe, expect, test } from 'vitest'
import { chooseBuild, type ReleaseMachine } from '../../../../cli/engines/releases/choose-build.ts'
import { releaseKinds } from '../../../../cli/engines/releases/release-kinds.ts'

const llama = releaseKinds['llama-server']
const stableDiffusion = releaseKinds['sd-server']

/** The files of llama.cpp b11101, of September 2026. */
const b11101 =
  `cudart-llama-b11101-bin-ubuntu-cuda-12.8-x64.tar.gz cudart-llama-b11101-bin-ubuntu-cuda-13.4-arm64.tar.gz
  cudart-llama-b11101-bin-ubuntu-cuda-13.4-x64.tar.gz cudart-llama-bin-win-cuda-12.4-x64.zip cudart-llama-bin-win-cuda-13.4-arm64.zip
  cudart-llama-bin-win-cuda-13.4-x64.zip llama-b11101-bin-android-arm64-snapdragon.tar.gz llama-b11101-bin-android-arm64.tar.gz
  llama-b11101-bin-linux-arm64-snapdragon.tar.gz llama-b11101-bin-macos-arm64.tar.gz llama-b11101-bin-macos-x64.tar.gz
  llama-b11101-bin-ubuntu-arm64.tar.gz llama-b11101-bin-ubuntu-cuda-12.8-x64.tar.gz llama-b11101-bin-ubuntu-cuda-13.4-arm64.tar.gz
  llama-b11101-bin-ubuntu-cuda-13.4-x64.tar.gz llama-b11101-bin-ubuntu-openvino-2026.4-x64.tar.gz
  llama-b11101-bin-ubuntu-rocm-10.0-x64.tar.gz llama-b11101-bin-ubuntu-s390x.tar.gz llama-b11101-bin-ubuntu-sycl-fp16-x64.tar.gz
  llama-b11101-bin-ubuntu-sycl-fp32-x64.tar.gz llama-b11101-bin-ubuntu-vulkan-arm64.tar.gz llama-b11101-bin-ubuntu-vulkan-x64.tar.gz
  llama-b11101-bin-ubuntu-x64.tar.gz llama-b11101-bin-win-cpu-arm64.zip llama-b11101-bin-win-cpu-x64.zip
  llama-b11101-bin-win-cuda-12.4-x64.zip llama-b11101-bin-win-opencl-adreno-arm64.zip llama-b11101-bin-win-rocm-10.0-x64.zip
  llama-b11101-bin-win-vulkan-x64.zip llama-b11101-ui.tar.gz llama-b11101-xcframework.zip`.split(/\s+/)
/** Those of b6795, of October 2025: no CUDA for Linux, and archives as ZIP. */
const b6795 =
  `cudart-llama-bin-win-cuda-12.4-x64.zip llama-b6795-bin-macos-arm64.zip llama-b6795-bin-ubuntu-vulkan-x64.zip
  llama-b6795-bin-ubuntu-x64.zip llama-b6795-bin-win-cpu-x64.zip llama-b6795-xcframework.zip`.split(/\s+/)
/** Those of stable-diffusion.cpp master-929, of October 2026. */
const master929 = `cudart-sd-bin-win-cu12-x64.zip sd-master-929-3f8527a-bin-Darwin-macOS-26.6.2-arm64.zip
  sd-master-929-3f8527a-bin-Linux-Ubuntu-24.04-x86_64-rocm-7.14.0.zip sd-master-929-3f8527a-bin-Linux-Ubuntu-24.04-x86_64-vulkan.zip
  sd-master-929-3f8527a-bin-Linux-Ubuntu-24.04-x86_64.zip sd-master-929-3f8527a-bin-win-cpu-x64.zip
  sd-master-929-3f8527a-bin-win-cuda12-x64.zip sd-master-929-3f8527a-bin-win-rocm-7.14.0-x64.zip`.split(/\s+/)

const none: ReleaseMachine['cards'] = { nvidia: [], driver: null, fault: null, bus: [], renders: false }
const machine = (cards: Partial<ReleaseMachine['cards']> = {}, more: Partial<ReleaseMachine> = {}): ReleaseMachine => ({
  architecture: 'x64',
  rocm: null,
  ...more,
  cards: { ...none, ...cards },
})
const nvidia = (capability: number | null, driver: number, count = 1) =>
  machine({ nvidia: Array.from({ length: count }, () => ({ name: 'Card', capability })), driver, renders: true })
const amd = (rocm: string | null, renders = true) =>
  machine({ bus: [{ maker: 'amd', integrated: false }], renders }, { rocm })
const arm = (of: ReleaseMachine): ReleaseMachine => ({ ...of, architecture: 'arm64' })

const chosen = (choice: ReturnType<typeof chooseBuild>): string =>
  choice.build === null ? `none: ${choice.why}` : [choice.build.file, choice.libraries?.file ?? []].flat().join(' + ')

describe('llama.cpp b11101', () => {
  const choose = (of: ReleaseMachine, wanted: Parameters<typeof chooseBuild>[3] = 'auto') =>
    chooseBuild(llama, { version: 'b11101', files: b11101 }, of, wanted)
  const cuda = (version: string, architecture = 'x64') =>
    `llama-b11101-bin-ubuntu-cuda-${version}-${architecture}.tar.gz + cudart-llama-b11101-bin-ubuntu-cuda-${version}-${architecture}.tar.gz`
  const plain = (name: string) => `llama-b11101-bin-ubuntu-${name}.tar.gz`

  test.each<[string, ReleaseMachine, string]>([
    ['no card', machine(), plain('x64')],
    ['no card, arm64', arm(machine()), plain('arm64')],
    ['RTX 4090, new driver', nvidia(8.9, 580), cuda('13.4')],
    ['RTX 4090, driver of CUDA 12', nvidia(8.9, 535), cuda('12.8')],
    ['several of them', nvidia(8.9, 550, 4), cuda('12.8')],
    // It has no machine code in either build, and the driver is too old for the intermediate code of 13.4.
    ['H100, driver of CUDA 13.0', nvidia(9, 580), cuda('12.8')],
    ['H100, driver too old for intermediate code', nvidia(9, 550), plain('vulkan-x64')],
    ['two of them', nvidia(9, 550, 2), plain('x64')],
    ['GB10', arm(nvidia(12.1, 580)), cuda('13.4', 'arm64')],
    ['unknown capability', nvidia(null, 580), plain('vulkan-x64')],
    ['AMD with its ROCm', amd('10.0.1'), plain('rocm-10.0-x64')],
    ['AMD with another ROCm', amd('7.2.0'), plain('vulkan-x64')],
    ['AMD without ROCm', amd(null), plain('vulkan-x64')],
    ['AMD without a driver', amd(null, false), plain('x64')],
    ['Intel', machine({ bus: [{ maker: 'intel', integrated: true }], renders: true }), plain('vulkan-x64')],
    [
      'riscv64',
      { ...machine(), architecture: 'riscv64' },
      'none: llama.cpp b11101 has programs for Linux on arm64 and x64 only, and this machine is riscv64',
    ],
  ])('%s', (_, of, file) => expect(chosen(choose(of))).toBe(file))

  test('a backend that is asked for is taken, in the version that runs, else in the oldest', () => {
    expect(chosen(choose(machine(), 'vulkan'))).toBe(plain('vulkan-x64'))
    expect(chosen(choose(nvidia(8.9, 580), 'cpu'))).toBe(plain('x64'))
    expect(chosen(choose(nvidia(8.9, 580), 'cuda'))).toBe(cuda('13.4'))
    expect(chosen(choose(nvidia(9, 470), 'cuda'))).toBe(cuda('12.8'))
    expect(chosen(choose(arm(machine()), 'rocm'))).toBe(
      'none: llama.cpp b11101 has no build for rocm on arm64; it has: cpu, cuda, vulkan',
    )
  })

  test('why, and what would be better', () => {
    expect(choose(nvidia(8.9, 580)).why).toBe('The build for CUDA 13.4 suits 1 card (Card) with driver 580')
    expect(choose(nvidia(9, 470)).advice).toMatch(/^The builds for CUDA need a newer driver\./)
    expect(choose(amd(null, false)).advice).toMatch(/no driver offers it/)
    expect(choose(machine({ fault: 'nvidia-smi failed.' }))).toMatchObject({
      why: 'No build suits the cards of NVIDIA, so it is the one for the processor',
      advice: 'nvidia-smi failed.',
    })
  })
})

test('earlier releases of llama.cpp: no CUDA for Linux, and nothing for arm64', () => {
  const choose = (of: ReleaseMachine) => chooseBuild(llama, { version: 'b6795', files: b6795 }, of, 'auto')
  expect(chosen(choose(machine()))).toBe('llama-b6795-bin-ubuntu-x64.zip')
  const choice = choose(nvidia(8.9, 580))
  expect([chosen(choice), choice.advice]).toEqual([
    'llama-b6795-bin-ubuntu-vulkan-x64.zip',
    expect.stringContaining('This release has no build for CUDA.'),
  ])
  expect(choose(arm(machine()))).toMatchObject({
    build: null,
    why: 'llama.cpp b6795 has programs for Linux on x64 only, and this machine is arm64',
    advice: "Build llama.cpp on this machine, so that 'llama-server' is on the PATH.",
  })
  expect(chooseBuild(llama, { version: 'v0.5.0', files: ['nightly-tag.txt'] }, machine(), 'auto').why).toContain(
    'llama.cpp v0.5.0 has no program for Linux',
  )
})

test('stable-diffusion.cpp', () => {
  const choose = (of: ReleaseMachine) =>
    chosen(chooseBuild(stableDiffusion, { version: 'master-929-3f8527a', files: master929 }, of, 'auto'))
  const named = (backend: string) => `sd-master-929-3f8527a-bin-Linux-Ubuntu-24.04-x86_64${backend}.zip`
  expect(choose(machine())).toBe(named(''))
  expect(choose(nvidia(8.9, 580))).toBe(named('-vulkan'))
  expect(choose(amd('7.14.1'))).toBe(named('-rocm-7.14.0'))
  expect(choose(amd(null))).toBe(named('-vulkan'))
  expect(choose(arm(machine()))).toBe(
    'none: stable-diffusion.cpp master-929-3f8527a has programs for Linux on x64 only, and this machine is arm64',
  )
})
