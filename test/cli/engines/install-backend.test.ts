import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { downloadPackages, installPackages, missingPackages } from '../../../cli/engines/install-backend.ts'
import type { PullEvent } from '../../../core/models/hub/pull.ts'
import { hubSettings } from '../../../core/models/hub/settings.ts'
import { findBuilds } from '../../../gpu/engines/gguf/backend-packages.ts'
import { type GpuPackage, gpuPackages, packagedLlama } from '../../../gpu/engines/gguf/gpu-packages.ts'
import { npmPackage } from '../../fixtures/npm-package.ts'
import { openPackageIndex, zip } from '../../fixtures/package-index.ts'
import { temporaryFolder } from '../_infer.ts'

const content = new Map<string, Buffer>()

/** A package of the real shape with small files, and its description. */
function small(one: GpuPackage): [GpuPackage, Buffer] {
  const files = one.files.map(({ path }) => ({ path, bytes: randomBytes(40_000) }))
  for (const { path, bytes } of files) content.set(path.split('/').at(-1)!, bytes)
  const contents = {
    ...Object.fromEntries(files.map(({ path, bytes }) => [path, bytes])),
    [one.licenseFile]: Buffer.from(`license of ${one.name}`),
    ...(one.registry === 'pypi' ? { 'nvidia/include/large.h': randomBytes(5_000) } : {}),
    ...(one.without === undefined ? {} : { [one.without]: randomBytes(5_000) }),
    ...(one.registry === 'npm'
      ? { 'package.json': Buffer.from(JSON.stringify({ version: one.version })), 'dist/index.js': Buffer.from('1') }
      : {}),
  }
  const archive = one.registry === 'npm' ? npmPackage(contents) : zip(contents)
  const hex = createHash(one.hash.kind).update(archive).digest('hex')
  const described = files.map(({ path, bytes }) => ({ path, bytes: bytes.length }))
  return [{ ...one, bytes: archive.length, hash: { ...one.hash, hex }, files: described }, archive]
}

const sets = gpuPackages['cuda-12'].map(small)
const packages = sets.map(([described]) => described)
const address = (one: GpuPackage) => (one.registry === 'npm' ? `/${one.name}/-/${one.file}` : one.file)
const archives = Object.fromEntries(sets.map(([one, archive]) => [address(one), archive]))

async function setUp(files = archives, cutAfter?: number) {
  const index = await openPackageIndex(files, { cutAfter })
  onTestFinished(() => index.close())
  const folder = join(temporaryFolder(), 'backends')
  const downloads = join(folder, 'downloads')
  const events: PullEvent[] = []
  const sources = {
    npmRegistry: index.url.replace('/simple', ''),
    packageIndex: index.url,
    hub: hubSettings({}),
    retryRules: { attempts: 2, backoffMs: 1, silenceMs: 5_000 },
  }
  const tools = (signal = new AbortController().signal, heard = (_event: PullEvent) => {}) => ({
    signal,
    onEvent(event: PullEvent) {
      events.push(event)
      heard(event)
    },
    onUnpack: () => heard({ event: 'wait', file: 'unpack' }),
  })
  const install = (given = tools(), from?: string) =>
    installPackages(packages, { folder, files: from ?? downloads, given: from !== undefined, sources }, given)
  return { index, folder, downloads, events, sources, tools, install }
}

/** Everything in its place, and nothing else. */
function expectInstalled(folder: string): void {
  expect(missingPackages(folder, packages)).toEqual([])
  expect(findBuilds('cuda-12', folder, packagedLlama, 'x64')).toEqual({ ok: true })
  expect(readdirSync(folder).sort()).toEqual(['.setup.lock', 'node_modules'])
  const scope = join(folder, 'node_modules/@node-llama-cpp')
  expect(
    readdirSync(scope, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name).replace(`${scope}/`, ''))
      .sort(),
  ).toEqual(
    [
      'linux-x64-cuda/LICENSE',
      'linux-x64-cuda/bins/linux-x64-cuda/llama-addon.node',
      'linux-x64-cuda/dist/index.js',
      'linux-x64-cuda/package.json',
      'linux-x64-cuda-ext/LICENSE',
      'linux-x64-cuda-ext/dist/index.js',
      'linux-x64-cuda-ext/package.json',
      ...['libcublas.so.12', 'libcublasLt.so.12', 'libcudart.so.12', 'libggml-cuda.so']
        .concat('nvidia-cublas-cu12.LICENSE', 'nvidia-cuda-runtime-cu12.LICENSE')
        .map(name => `linux-x64-cuda-ext/bins/linux-x64-cuda/fallback/${name}`),
    ].sort(),
  )
  for (const [name, bytes] of content) {
    const path = readdirSync(scope, { recursive: true, encoding: 'utf8' }).find(one => one.endsWith(`/${name}`))!
    expect(readFileSync(join(scope, path)).equals(bytes), name).toBe(true)
    expect(statSync(join(scope, path)).mode & 0o022).toBe(0)
  }
}

test('the packages of both registries are unpacked into one folder, and a second call requests nothing', async () => {
  const { install, folder, index } = await setUp()
  await install()
  expectInstalled(folder)
  const requested = index.requests.length
  await install()
  expect(index.requests.length).toBe(requested)
  // A package that lost a file is made anew, and only this one is downloaded.
  writeFileSync(
    join(folder, 'node_modules/@node-llama-cpp/linux-x64-cuda-ext/bins/linux-x64-cuda/fallback/libcudart.so.12'),
    '',
  )
  await install()
  expectInstalled(folder)
  expect(index.requests.slice(requested).some(({ path }) => path.includes('linux-x64-cuda/'))).toBe(false)
})

const total = packages.reduce((sum, { bytes }) => sum + bytes, 0)
test('interrupted at any moment it continues with the bytes that it has', async () => {
  const moments = Array.from({ length: 20 }, (_, at) => Math.floor((total * at) / 20))
  const { install, folder, index, tools, events } = await setUp()
  const stopped = new Error('stopped')
  for (const moment of [...moments, 'unpack' as const]) {
    const abort = new AbortController()
    const before = new Map<string, number>()
    const heard = (event: PullEvent) => {
      if (event.event === 'progress' || event.event === 'resume') before.set(event.file, event.bytes)
      if (event.event === 'file') before.set(event.file, event.bytes)
      const sum = [...before.values()].reduce((all, one) => all + one, 0)
      if (moment === 'unpack' ? event.event === 'wait' : sum > moment) abort.abort(stopped)
    }
    // Files that were complete before are not reported again.
    for (const { file, bytes } of packages) if (existsSync(join(folder, 'downloads', file))) before.set(file, bytes)
    await expect(install(tools(abort.signal, heard))).rejects.toBe(stopped)
    expect(existsSync(join(folder, 'node_modules'))).toBe(false)
  }
  await install()
  expectInstalled(folder)
  expect(events.some(({ event }) => event === 'resume')).toBe(true)
  expect(index.requests.some(({ range }) => range !== undefined)).toBe(true)
})

test('a broken connection is resumed in the same call', async () => {
  const { install, folder, index } = await setUp(archives, 20_000)
  await install()
  expectInstalled(folder)
  expect(index.requests.some(({ range }) => range !== undefined)).toBe(true)
})

test.each(sets.map(([one]) => [one.file, one] as const))(
  'a changed byte of %s is refused, and the file deleted',
  async (_, one) => {
    const changed = Buffer.from(archives[address(one)]!)
    changed[changed.length >> 1]! ^= 1
    const { install, folder, downloads } = await setUp({ ...archives, [address(one)]: changed })
    await expect(install()).rejects.toThrow(
      one.registry === 'npm' ? /is damaged.*sha512/ : /states another SHA-256|is damaged/,
    )
    expect(existsSync(join(folder, 'node_modules'))).toBe(false)
    expect(readdirSync(downloads).filter(name => name.startsWith(one.file))).toEqual([])
  },
)

test('files that were downloaded on another machine are installed without a request, and checked', async () => {
  const [there, here] = [await setUp(), await setUp({})]
  const usb = join(temporaryFolder(), 'usb')
  await downloadPackages(packages, usb, there.sources, there.tools())
  await here.install(here.tools(), usb)
  expectInstalled(here.folder)
  expect(here.index.requests).toEqual([])
  const [last] = packages.slice(-1)
  const path = join(usb, last!.file)
  const bytes = readFileSync(path)
  bytes[9_000]! ^= 1
  writeFileSync(path, bytes)
  const other = await setUp({})
  await expect(other.install(other.tools(), usb)).rejects.toThrow(
    `${path} is not the file that infer expects: its sha256 differs`,
  )
  expect(existsSync(path)).toBe(true)
  expect(existsSync(join(other.folder, 'node_modules'))).toBe(false)
  await expect(other.install(other.tools(), temporaryFolder())).rejects.toThrow(
    /has no file linux-x64-cuda-3.*--download-only/,
  )
})

test('what a killed setup left is removed, and the packages of before stay until the new ones are complete', async () => {
  const { install, folder, tools } = await setUp()
  mkdirSync(join(folder, '.setup-1/@node-llama-cpp'), { recursive: true })
  const old = join(folder, 'node_modules/@node-llama-cpp/linux-x64-cuda')
  mkdirSync(old, { recursive: true })
  writeFileSync(join(old, 'package.json'), '{"version":"0.0.1"}')
  const abort = new AbortController()
  await expect(
    install(tools(abort.signal, ({ event }) => event === 'wait' && abort.abort(new Error('stopped')))),
  ).rejects.toThrow('stopped')
  expect(readFileSync(join(old, 'package.json'), 'utf8')).toContain('0.0.1')
  await install()
  expectInstalled(folder)
})
