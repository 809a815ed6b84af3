import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { llamaVersion } from '../../../core/assets.ts'
import { type Device, noReadings } from '../../../gpu/devices/device.ts'
import { openCardBackends } from '../../../gpu/placement/card-backend.ts'
import { noWrapper } from '../../../gpu/sandbox/wrapper.ts'

const card = (index: number): Device => ({
  id: `gpu${index}`,
  kind: 'nvidia',
  name: 'Test Card',
  totalBytes: 2 ** 34,
  usedBytes: null,
  ...noReadings,
  cudaId: String(index),
  uuid: null,
  cores: null,
})

function install(folder: string, builds: readonly string[]): void {
  for (const name of builds) {
    const at = join(folder, 'backends/node_modules/@node-llama-cpp', name)
    for (const part of ['bins/linux-x64-cuda', 'dist']) mkdirSync(join(at, part), { recursive: true, mode: 0o755 })
    if (name === 'linux-x64-cuda') writeFileSync(join(at, 'bins/linux-x64-cuda/libggml-cuda.so'), '')
    writeFileSync(join(at, 'package.json'), JSON.stringify({ version: llamaVersion }))
  }
}

/** The backends of a machine with these GPUs and, below the folder, these builds, which are empty. */
function open(cards: number, builds: readonly string[], cache = 'cache') {
  const folder = mkdtempSync(join(tmpdir(), 'infer-cards-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  install(folder, builds)
  const warnings: string[] = []
  const said: string[] = []
  const warn = (message: string, { backend }: { backend?: string }) => {
    said.push(message)
    if (backend !== undefined) warnings.push(backend)
  }
  const log = { warn, info: () => {} }
  const devices = Array.from({ length: cards }, (_, index) => card(index))
  let now = 0
  const backends = openCardBackends({
    dataDir: folder,
    environment: { PATH: process.env.PATH, HOME: folder, INFER_CACHE_DIR: join(folder, cache) },
    wrapper: noWrapper,
    memory: { devices: () => devices },
    log: log as never,
    now: () => now,
  })
  return { later: () => void (now += 1_000), backends, warnings, said, devices, folder }
}

test.each([
  ['without a card', 0, ['linux-x64-cuda'], undefined],
  ['without builds', 1, [], undefined],
  ['switched off', 1, ['linux-x64-cuda'], 'off' as const],
])('%s no backend is tried, and the CPU is used', async (_, cards, builds, gpu) => {
  const { backends, warnings } = open(cards, builds)
  expect(await backends.find({ gpu })).toBeNull()
  expect(backends.fault({ gpu })).toBe(
    cards > 0 && gpu !== 'off' ? 'the built-in engine has no backend for them' : null,
  )
  expect(warnings).toEqual([])
})

test('a backend that fails is tried once and reported, and the CPU is used', async () => {
  const { backends, warnings } = open(1, ['linux-x64-cuda', 'linux-x64-vulkan'])
  expect(await Promise.all([backends.find({}), backends.find({})])).toEqual([null, null])
  expect(await backends.find({ gpu: undefined })).toBeNull()
  expect(warnings).toEqual(['cuda', 'vulkan'])
  expect(backends.found({})).toBeNull()
  expect(backends.fault({})).toMatch(/^the backend 'cuda' does not work \(it .*\)$/)
})

test('where results cannot be stored and so no backend is tried, the CPU is used, and that is reported', async () => {
  const ext = 'linux-x64-cuda-ext'
  const { backends, warnings, said } = open(
    1,
    ['linux-x64-cuda', ext],
    `backends/node_modules/@node-llama-cpp/${ext}/package.json`,
  )
  expect(await backends.find({})).toBeNull()
  expect(warnings).toContain('cuda')
  expect(said.at(-1)).toMatch(/^The backends for GPUs cannot be tried/)
  expect(await backends.find({})).toBeNull()
})

test('Vulkan is used with several GPUs if their numbers in Vulkan are known, because only then it can be limited to one', async () => {
  const { backends, warnings, devices } = open(2, ['linux-x64-cuda', 'linux-x64-vulkan'])
  expect(await backends.find({ gpu: 'vulkan' })).toBeNull()
  expect(backends.fault({ gpu: 'vulkan' })).toBe('no backend of the built-in engine can be limited to one of them')
  expect(warnings).toEqual([])
  devices[1] = { ...devices[1]!, vulkanId: '0' }
  // Without builds that work it is tried and reported.
  expect(await backends.find({ gpu: 'vulkan' })).toBeNull()
  expect(warnings).toEqual(['vulkan'])
  // A model that is bound to the other card cannot use it.
  expect(await backends.find({ gpu: 'vulkan', id: 'm', devices: ['gpu0'] })).toBeNull()
  expect(warnings).toEqual(['vulkan'])
})

test('the backends are tried again when a card or a build has appeared, without a restart', async () => {
  const { backends, warnings, devices, folder, later } = open(1, [])
  const [card] = devices.splice(0)
  expect(await backends.find({ gpu: 'vulkan' })).toBeNull()
  devices.push({ ...card!, kind: 'amd', cudaId: null, vulkanId: '0' })
  expect(await backends.find({ gpu: 'vulkan' })).toBeNull()
  expect(warnings).toEqual([])
  install(folder, ['linux-x64-vulkan'])
  // What tells of builds and drivers is read once a second at most.
  expect(await backends.find({ gpu: 'vulkan' })).toBeNull()
  expect(warnings).toEqual([])
  later()
  expect(await backends.find({ gpu: 'vulkan' })).toBeNull()
  expect(warnings).toEqual(['vulkan'])
  expect(backends.fault({ gpu: 'vulkan' })).toMatch(/^the backend 'vulkan' does not work/)
  rmSync(join(folder, 'backends'), { recursive: true })
  later()
  expect(await backends.find({ gpu: 'vulkan' })).toBeNull()
  expect(backends.fault({ gpu: 'vulkan' })).toBe('the built-in engine has no backend for them')
})
