import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { llamaVersion } from '../../../../core/assets.ts'
import {
  type BackendName,
  noCudaDriver,
  reportMissing,
  reportTrial,
  type TrialRun,
} from '../../../../gpu/engines/gguf/backend.ts'
import { findBuilds, openOlderCuda } from '../../../../gpu/engines/gguf/backend-packages.ts'
import { type BackendSearch, runTrial, searchBackends } from '../../../../gpu/engines/gguf/backend-search.ts'
import { probeWrapper } from '../../../../gpu/sandbox/probe-wrapper.ts'

const fake = join(import.meta.dirname, '../../../fixtures/backend.ts')
const env = { PATH: process.env.PATH! }

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'infer-backend-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
  writeFileSync(path, text)
}

/** Packages as npm installs them. */
function install(folder: string, names: readonly string[], version = llamaVersion): void {
  for (const name of names) {
    const at = join(folder, 'node_modules/@node-llama-cpp', name)
    put(join(at, 'package.json'), JSON.stringify({ version }))
    put(join(at, 'dist/index.js'), 'export {}')
    put(join(at, 'bins/linux-x64-cuda/libggml-cuda.so'), name)
    put(join(at, 'bins/linux-x64-cuda/llama-addon.node'), name)
    put(join(at, 'bins/linux-x64-cuda/fallback/libggml-cuda.so'), name)
  }
}

describe('the result of a trial', () => {
  const run = (of: Partial<TrialRun>): TrialRun => ({
    status: '0',
    timedOut: false,
    stdout: '',
    stderr: '',
    ms: 1500,
    ...of,
  })
  const answer = (devices: string[]) => JSON.stringify({ release: 'v0.5.0', devices })
  test.each<[name: BackendName, run: Partial<TrialRun>, state: string, detail: RegExp, advice: RegExp | null]>([
    ['cuda', { stdout: answer(['H200']) }, 'works', /^computes on H200 \(llama.cpp v0.5.0, tried in 1.5 s\)$/, null],
    ['cpu', { stdout: `loading\n${answer([])}\n` }, 'works', /^computes on the processor/, null],
    ['vulkan', { stdout: answer([]) }, 'fails', /finds no device/, /Vulkan driver/],
    [
      'cuda',
      { status: 'SIGABRT', stderr: 'CUDA error: the provided PTX was compiled with an unsupported toolchain.\n\n' },
      'fails',
      /^it crashed \(SIGABRT\): CUDA error: the provided PTX.*toolchain$/,
      /update it to 590 or newer, or use .*: infer engine setup gpu --backend cuda-12$/,
    ],
    ['cuda', { status: 'SIGSEGV' }, 'fails', /^it crashed \(SIGSEGV\)$/, /setup gpu --backend cuda-12/],
    [
      'cuda-12',
      { status: '1', stderr: 'libcudart.so.12: cannot open shared object file' },
      'fails',
      /it does not start: lib/,
      /^libcudart.so.12 is missing. infer engine setup gpu --backend cuda-12 brings it/,
    ],
    [
      'cuda',
      { status: '1', stderr: 'libcuda.so.1: cannot open shared object file' },
      'fails',
      /libcuda.so.1/,
      /^libcuda.so.1 is part of the NVIDIA driver. Install the driver/,
    ],
    [
      'vulkan',
      { status: '1', stderr: 'libvulkan.so.1: cannot open shared object file' },
      'fails',
      /libvulkan.so.1/,
      /^Install the Vulkan driver of the card/,
    ],
    [
      'cuda',
      { status: '1', stderr: `Error: llama.cpp cannot be started: ${noCudaDriver}.` },
      'fails',
      /the NVIDIA driver does not run this build/,
      /^The driver is too old for this build: .*--backend cuda-12$/,
    ],
    [
      'cuda',
      { status: '1', stderr: "libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by libggml-cuda.so)" },
      'fails',
      /GLIBCXX/,
      /newer C\+\+ library than this system has/,
    ],
    [
      'cuda-12',
      { timedOut: true, status: 'SIGKILL' },
      'fails',
      /did not finish within 1.5 s and was killed/,
      /driver 550/,
    ],
    ['vulkan', { stdout: 'no json' }, 'fails', /does not start/, /^Install the Vulkan driver/],
    ['vulkan', { status: 'SIGSEGV' }, 'fails', /^it crashed \(SIGSEGV\)$/, /driver has crashed: update it/],
    [
      'vulkan',
      { status: '1', stderr: "GGML_VK_VISIBLE_DEVICES is '7': no such device" },
      'fails',
      /no such device$/,
      /^Correct or remove GGML_VK_VISIBLE_DEVICES/,
    ],
    ['cpu', { status: 'SIGILL' }, 'fails', /crashed \(SIGILL\)/, /^Other engines still work/],
  ])('%s: %o', (name, of, state, detail, advice) => {
    const report = reportTrial(name, run(of), null)
    expect(report.state).toBe(state)
    expect(report.detail).toMatch(detail)
    if (advice) expect(report.advice).toMatch(advice)
    else expect(report.advice).toBeNull()
  })
})

describe('a trial is a process that', () => {
  const trial = async (ending: string, deadlineMs = 20_000) =>
    runTrial({ argv: [process.execPath, fake, ending], env, deadlineMs, wrapper: (await probeWrapper(env)).wrapper })

  test('answers', async () => {
    const run = await trial('works')
    expect(run).toMatchObject({ status: '0', timedOut: false })
    expect(JSON.parse(run.stdout)).toEqual({ release: 'v9', devices: ['Card One'] })
  })
  test('crashes', async () => expect(await trial('crashes')).toMatchObject({ status: 'SIGABRT', timedOut: false }))
  test('refuses', async () => expect(await trial('refuses')).toMatchObject({ status: '1', timedOut: false }))
  test('hangs, and is ended with its children', async () => {
    const run = await trial('hangs', 1500)
    expect(run.timedOut).toBe(true)
    expect(run.ms).toBeLessThan(10_000)
  })
  test('does not exist', async () => {
    const run = await runTrial({ argv: ['/nonexistent/program'], env, deadlineMs: 5_000 })
    expect(reportTrial('cpu', run, null).state).toBe('fails')
  })
})

describe('builds for GPUs', () => {
  const cuda = ['linux-x64-cuda']
  test.each<[what: string, prepare: (folder: string) => void, why: RegExp | null]>([
    ['are found', folder => install(folder, cuda), null],
    ['are not there', () => {}, /linux-x64-cuda@\S+ is not installed in/],
    ['are of another version', folder => install(folder, cuda, '1.2.3'), /is version 1.2.3, and [\d.]+ is needed/],
    [
      'can be written to by others',
      folder => {
        install(folder, cuda)
        chmodSync(join(folder, 'node_modules/@node-llama-cpp/linux-x64-cuda/bins'), 0o777)
      },
      /other users can write to/,
    ],
  ])('%s', (_, prepare, why) => {
    const folder = temporaryFolder()
    prepare(folder)
    const found = findBuilds('cuda', folder, llamaVersion)
    expect(found.ok ? null : found.why).toEqual(why === null ? null : expect.stringMatching(why))
  })

  test('the older CUDA build is the only one in its folder, which is created once', () => {
    const [folder, cache] = [temporaryFolder(), temporaryFolder()]
    install(folder, ['linux-x64-cuda', 'linux-x64-cuda-ext'])
    const view = openOlderCuda(folder, cache)
    const bins = (name: string) => join(view, 'node_modules/@node-llama-cpp', name, 'bins/linux-x64-cuda')
    expect(existsSync(join(bins('linux-x64-cuda'), 'llama-addon.node'))).toBe(true)
    expect(existsSync(join(bins('linux-x64-cuda'), 'libggml-cuda.so'))).toBe(false)
    expect(readFileSync(join(bins('linux-x64-cuda-ext'), 'fallback/libggml-cuda.so'), 'utf8')).toBe(
      'linux-x64-cuda-ext',
    )
    expect(openOlderCuda(folder, cache)).toBe(view)
    expect(findBuilds('cuda-12', view, llamaVersion)).toEqual({ ok: true })
    // A build of other packages replaces it.
    install(folder, ['linux-x64-cuda-ext'], '0.0.1')
    expect(openOlderCuda(folder, cache)).not.toBe(view)
    expect(existsSync(view)).toBe(false)
  })

  test('without the library of the main build only the older one is there, in the folder itself', () => {
    const [folder, cache] = [temporaryFolder(), temporaryFolder()]
    install(folder, ['linux-x64-cuda', 'linux-x64-cuda-ext'])
    rmSync(join(folder, 'node_modules/@node-llama-cpp/linux-x64-cuda/bins/linux-x64-cuda/libggml-cuda.so'))
    expect(findBuilds('cuda', folder, llamaVersion)).toMatchObject({
      ok: false,
      why: expect.stringContaining('only the build for older') as string,
    })
    expect(findBuilds('cuda-12', folder, llamaVersion)).toEqual({ ok: true })
    expect(openOlderCuda(folder, cache)).toBe(folder)
  })
})

describe('the search', () => {
  const card = { id: 'gpu0', name: 'H200', kind: 'nvidia' as const, totalBytes: 2 ** 37, cudaId: '0' }

  /** A search whose trials end as configured; `tried` lists those that were made, in order. */
  function searching(endings: Partial<Record<BackendName, string>>, of: Partial<BackendSearch> = {}) {
    const [folder, cache] = [temporaryFolder(), temporaryFolder()]
    const record = join(cache, 'record')
    install(folder, ['linux-x64-cuda', 'linux-x64-cuda-ext', 'linux-x64-vulkan'])
    const search: BackendSearch = {
      folder,
      cache,
      devices: [card],
      environment: env,
      deadlineMs: () => 20_000,
      command: name => [process.execPath, fake, endings[name] ?? 'refuses', record, name],
      ...of,
    }
    const tried = () => {
      const lines = existsSync(record) ? readFileSync(record, 'utf8').trim().split('\n') : []
      rmSync(record, { force: true })
      return lines
    }
    return { search, tried, folder }
  }
  const firstThatWorks = async (search: BackendSearch) => {
    for await (const report of searchBackends(search)) if (report.state === 'works') return report
    return undefined
  }
  const all = async (search: BackendSearch) => {
    const reports = []
    for await (const report of searchBackends(search)) reports.push(report)
    return reports
  }

  test('a CUDA build that crashes is followed by the older one', async () => {
    const { search, tried, folder } = searching({ cuda: 'crashes', 'cuda-12': 'works', vulkan: 'works' })
    const found = await firstThatWorks(search)
    expect(found).toMatchObject({ name: 'cuda-12', state: 'works' })
    expect(found!.folder).not.toBe(folder)
    expect(tried()).toEqual(['cuda', 'cuda-12'])
  })

  test('is not repeated until one of its inputs changes', async () => {
    const { search, tried, folder } = searching({ cuda: 'crashes', vulkan: 'works', cpu: 'none' })
    const before = await all(search)
    expect(before.map(({ name, state }) => [name, state])).toEqual([
      ['cuda', 'fails'],
      ['cuda-12', 'fails'],
      ['vulkan', 'works'],
      ['cpu', 'works'],
    ])
    expect(tried()).toHaveLength(4)
    expect(await all(search)).toEqual(before)
    expect(tried()).toEqual([])
    await all({ ...search, devices: [] })
    expect(tried(), 'other devices').toHaveLength(4)
    await all({ ...search, environment: { ...env, LD_LIBRARY_PATH: '/opt/cuda/lib64' } })
    expect(tried(), 'other libraries').toHaveLength(4)
    for (const name of ['VK_DRIVER_FILES', 'VK_ICD_FILENAMES', 'GGML_VK_VISIBLE_DEVICES', 'HSA_OVERRIDE_GFX_VERSION']) {
      await all({ ...search, names: ['vulkan'], environment: { ...env, [name]: '/other' } })
      expect(tried(), name).toHaveLength(1)
    }
    const manifest = join(folder, 'driver.json')
    const driver = { ...search, names: ['vulkan'] as const, environment: { ...env, VK_DRIVER_FILES: manifest } }
    await all(driver)
    tried()
    put(manifest, '{}')
    await all(driver)
    expect(tried(), 'a driver is installed').toHaveLength(1)
    await all({ ...search, environment: { ...env, LD_LIBRARY_PATH: '/opt/cuda/lib64' }, retest: true })
    expect(tried(), 'asked to').toHaveLength(4)
    install(folder, ['linux-x64-vulkan'], '0.0.1')
    expect((await all(search)).find(({ name }) => name === 'vulkan')).toMatchObject({ state: 'missing' })
  })

  test('a failure is repeated an hour later, or when asked to', async () => {
    let at = 0
    const { search, tried } = searching({ cuda: 'crashes', vulkan: 'works', cpu: 'none' }, { now: () => at })
    await all(search)
    tried()
    at = 59 * 60_000
    await all(search)
    expect(tried(), 'within the hour').toEqual([])
    await all({ ...search, retest: 'failures' })
    expect(tried(), 'asked to').toEqual(['cuda', 'cuda-12'])
    at += 60 * 60_000
    await all(search)
    expect(tried(), 'an hour later').toEqual(['cuda', 'cuda-12'])
  })

  test('arm64 has no builds for GPUs to install, and the advice names another engine', () => {
    const found = findBuilds('cuda', '/nonexistent', llamaVersion, 'arm64')
    expect(found).toMatchObject({ ok: false, why: 'node-llama-cpp publishes no cuda build for arm64' })
    if (found.ok) return
    expect(reportMissing('cuda', { ...found, cards: true }).advice).toMatch(/engine: llama-server/)
    expect(reportMissing('cuda', { ...found, cards: false }).advice).toBeNull()
    expect(findBuilds('cpu', '/nonexistent', llamaVersion, 'arm64')).toEqual({ ok: true })
  })

  test('a missing build is not tried; where there is a GPU the message says how to install it', async () => {
    const { search, tried } = searching({ cpu: 'none' }, { folder: '/nonexistent' })
    const [cuda, , vulkan] = await all(search)
    expect(cuda).toMatchObject({
      state: 'missing',
      detail: `@node-llama-cpp/linux-x64-cuda@${llamaVersion} is not installed in /nonexistent`,
      advice: 'infer engine setup gpu --backend cuda',
    })
    expect(vulkan).toMatchObject({ state: 'missing' })
    expect(tried()).toEqual(['cpu'])
    const [without] = await all({ ...search, devices: [] })
    expect(without).toMatchObject({ detail: expect.stringContaining('no NVIDIA GPU') as string, advice: null })
  })
})
