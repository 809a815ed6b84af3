import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { cxxVersionOf, readCxxLibrary } from '../../../../gpu/devices/cxx-library.ts'
import { driverAdvice, familyOf, type LinuxSystem, vulkanAdvice } from '../../../../gpu/devices/driver-advice.ts'
import type { BusCard, GraphicsCards } from '../../../../gpu/devices/graphics-cards.ts'
import { packagesOf } from '../../../../gpu/engines/gguf/backend.ts'
import { chooseGpuBackend } from '../../../../gpu/engines/gguf/choose-backend.ts'
import { gpuBackends, gpuPackages, packagedLlama } from '../../../../gpu/engines/gguf/gpu-packages.ts'

const debian: LinuxSystem = { family: 'debian', isContainer: false }
const none: GraphicsCards = { nvidia: [], driver: null, fault: null, bus: [], renders: false }
const onBus = (...makers: BusCard['maker'][]): Partial<GraphicsCards> => ({
  bus: makers.map(maker => ({ maker, integrated: false })),
})
const nvidia = (driver: number | null, ...capabilities: (number | null)[]): Partial<GraphicsCards> => ({
  nvidia: capabilities.map(capability => ({ name: 'Card', capability })),
  driver,
  ...onBus('nvidia'),
  renders: true,
})

describe('the backend of a machine', () => {
  test.each<[what: string, cards: Partial<GraphicsCards>, backend: string | null, said: RegExp]>([
    ['RTX 3090, new driver', nvidia(590.48, 8.6), 'cuda', /^CUDA 13 for 1 card \(Card\) with driver 590.48$/],
    ['RTX 4090, machine code for CUDA 13', nvidia(580.95, 8.9), 'cuda', /^CUDA 13/],
    ['RTX 5090, driver of CUDA 13', nvidia(580, 12), 'cuda', /^CUDA 13/],
    ['H100, intermediate code needs 590', nvidia(580.95, 9), 'cuda-12', /^CUDA 12 for/],
    ['H100, new driver', nvidia(590, 9), 'cuda', /^CUDA 13/],
    ['A100, driver 550', nvidia(550.54, 8), 'cuda-12', /^CUDA 12/],
    ['A100 is too new for driver 535', nvidia(535, 8), 'vulkan', /^Vulkan.*CUDA needs driver 550/s],
    ['RTX 3090, driver 535', nvidia(535.1, 8.6), 'cuda-12', /^CUDA 12/],
    ['RTX 3090, driver 470', nvidia(470.2, 8.6), 'vulkan', /CUDA needs driver 525 .*apt install nvidia-driver/s],
    ['GTX 1080 with the newest driver that it has', nvidia(580, 6.1), 'cuda-12', /^CUDA 12/],
    ['RTX 5090, driver 570', nvidia(570, 12), 'vulkan', /CUDA needs driver 580/],
    ['two cards of different age', nvidia(590, 6.1, 8.6), 'cuda-12', /^CUDA 12 for 2 cards \(Card\)/],
    ['two cards, old driver', nvidia(470, 8.6, 8.9), 'vulkan', /^Vulkan for 2 cards.*driver 525/s],
    ['Kepler', nvidia(470, 3.5), 'vulkan', /^Vulkan/],
    ['unknown capability', nvidia(590, null), 'cuda', /^CUDA 13/],
    ['unknown driver', nvidia(null, 8.6), 'vulkan', /with driver of unknown version/],
    ['AMD', { ...onBus('amd'), renders: true }, 'vulkan', /^Vulkan for the card of AMD/],
    ['AMD and Intel', { ...onBus('amd', 'intel'), renders: true }, 'vulkan', /of AMD and Intel/],
    ['unknown maker', { renders: true }, 'vulkan', /in \/dev\/dri/],
    ['AMD without driver', onBus('amd'), null, /no driver offers it.*apt install libvulkan1 mesa/s],
    ['NVIDIA without driver', { ...onBus('nvidia'), renders: true }, null, /its driver is not installed.*apt install/s],
    [
      'NVIDIA with a broken driver',
      { ...onBus('nvidia'), fault: 'nvidia-smi cannot reach the NVIDIA driver.' },
      null,
      /^nvidia-smi cannot reach the NVIDIA driver. Run nvidia-smi/,
    ],
    ['nothing', {}, null, /^There is no GPU in this machine/],
  ])('%s', (_, cards, backend, said) => {
    const choice = chooseGpuBackend({ ...none, ...cards }, debian, 'x64')
    expect(choice.backend).toBe(backend)
    expect(`${choice.why}${choice.advice === null ? '' : `. ${choice.advice}`}`).toMatch(said)
    expect(choice.backend === null && choice.none).toBe(_ === 'nothing')
  })

  test('ARM has no build, and the advice names another engine', () => {
    const choice = chooseGpuBackend({ ...none, ...nvidia(590, 9) }, debian, 'arm64')
    expect(choice).toMatchObject({ backend: null, advice: expect.stringContaining('engine: llama-server') as string })
  })
})

test.each<[release: string, family: LinuxSystem['family'], driver: RegExp, vulkan: RegExp]>([
  ['PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n', 'debian', /apt install nvidia-driver/, /apt install/],
  ['ID=ubuntu\nID_LIKE=debian\n', 'ubuntu', /ubuntu-drivers install/, /apt install/],
  ['ID="rocky"\nID_LIKE="rhel centos fedora"\n', 'rhel', /dnf install nvidia-open/, /dnf install/],
  ['ID=kali\nID_LIKE=debian', 'debian', /apt install/, /apt install/],
  ['ID=endeavouros\nID_LIKE=arch', 'arch', /pacman -S nvidia-open/, /pacman -S/],
  ['ID=nixos', 'other', /nvidia\.com\/drivers/, /Mesa/],
  ['', 'other', /nvidia\.com\/drivers/, /Mesa/],
])('how to install a driver: %o', (release, family, driver, vulkan) => {
  expect(familyOf(release)).toBe(family)
  expect(driverAdvice({ family, isContainer: false })).toMatch(driver)
  expect(vulkanAdvice({ family, isContainer: false })).toMatch(vulkan)
})

test('in a container the driver is that of the host', () =>
  expect(driverAdvice({ family: 'debian', isContainer: true })).toMatch(/on the host.*--gpus all/))

describe('the packages', () => {
  const root = join(import.meta.dirname, '../../../..')
  const read = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8')) as Record<string, unknown>

  test('are those of the version of node-llama-cpp in package.json', () => {
    expect(packagedLlama).toBe((read('package.json').dependencies as Record<string, string>)['node-llama-cpp'])
    expect(packagedLlama).toBe(read('node_modules/node-llama-cpp/package.json').version)
  })

  test('contain the builds of each backend, and no file twice', () => {
    for (const backend of gpuBackends) {
      const packages = gpuPackages[backend]
      expect(packages.filter(({ registry }) => registry === 'npm').map(({ name }) => name)).toEqual(packagesOf[backend])
      expect(new Set(packages.map(({ file }) => file)).size).toBe(packages.length)
      for (const { hash } of packages)
        expect(hash.hex).toMatch(hash.kind === 'sha512' ? /^[0-9a-f]{128}$/ : /^[0-9a-f]{64}$/)
    }
  })

  test.each([
    ['cuda', 620e6],
    ['cuda-12', 790e6],
    ['vulkan', 30e6],
  ] as const)('%s is not larger than announced', (backend, most) => {
    expect(gpuPackages[backend].reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(most)
  })
})

test.each<[library: number | null, backend: string | null]>([
  [28, null],
  [29, null],
  [30, 'cuda'],
  [33, 'cuda'],
  [null, 'cuda'],
])('a C++ library of version 3.4.%s', (cxxLibrary, backend) => {
  const choice = chooseGpuBackend({ ...none, ...nvidia(590, 8.6) }, { ...debian, cxxLibrary }, 'x64')
  expect(choice.backend).toBe(backend)
  if (backend !== null) return
  expect(choice).toMatchObject({
    none: false,
    why: `The builds for GPUs need a newer C++ library than this system has (GLIBCXX_3.4.30, here GLIBCXX_3.4.${cxxLibrary})`,
    advice:
      'Use Debian 12, Ubuntu 22.04, RHEL 10 or a later system, or build llama.cpp on this machine and set "engine: llama-server" in infer.yaml.',
  })
})

test('the version of the C++ library is the newest of its version strings', () => {
  expect(
    cxxVersionOf(Buffer.from('\0GLIBCXX_3.4\0GLIBCXX_3.4.9\0GLIBCXX_3.4.29\0GLIBCXX_TUNABLES\0CXXABI_1.3.13')),
  ).toBe(29)
  expect(cxxVersionOf(Buffer.from('nothing'))).toBeNull()
  // That of this process, which a development machine has new enough.
  expect(readCxxLibrary()).toBeGreaterThanOrEqual(30)
  expect(readCxxLibrary('/nonexistent')).toBeNull()
})
