import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { modelPaths } from '../../../gpu/presets/sandbox-requirements.ts'
import { effectiveLevel, type SandboxSupport, sandboxRefusal, sandboxWarning } from '../../../gpu/sandbox/level.ts'
import { mountAt, mountOptions, mountTable } from '../../../gpu/sandbox/mount.ts'
import { commandPaths, programPaths } from '../../../gpu/sandbox/program-paths.ts'
import { resolvedPathsOf } from '../../../gpu/sandbox/resolved-paths.ts'
import { absentPath, sandboxHint } from '../../../gpu/sandbox/sandbox.ts'
import { sharedLibraries } from '../../../gpu/sandbox/shared-libraries.ts'
import { type DeviceFiles, readSystem } from '../../../gpu/sandbox/system.ts'
import { temporary } from '../launcher/_launch.ts'
import { buildProgram, hasCompiler } from './_program.ts'
import { probeWith } from './_tools.ts'

const put = (path: string, text = '', mode = 0o644): string => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text, { mode })
  return path
}

test.each([
  ['/models/a.gguf', ['/models/a.gguf']],
  ['/models/folder', ['/models/folder']],
  ['meta-llama/Llama-3.3', ['meta-llama/Llama-3.3']],
  ['/m/b-00002-of-00003.gguf', ['/m/b-00001-of-00003.gguf', '/m/b-00002-of-00003.gguf', '/m/b-00003-of-00003.gguf']],
  ['/c/hub/models--a--b/snapshots/r/x.gguf', ['/c/hub/models--a--b']],
  ['/c/hub/models--a--b/snapshots/r/x-00001-of-00002.gguf', ['/c/hub/models--a--b']],
])('the files of %s', (source, paths) => {
  expect(modelPaths(source)).toEqual(paths)
})

test('a path is known by every name that links on the way give it', async () => {
  const folder = realpathSync(temporary())
  const file = put(join(folder, 'disk', 'models', 'x.gguf'))
  symlinkSync(join(folder, 'disk'), join(folder, 'mnt'))
  symlinkSync('../mnt/models', put(join(folder, 'home', 'x'), '').replace(/x$/, 'models'))
  const name = join(folder, 'home', 'models', 'x.gguf')
  expect(await resolvedPathsOf(name)).toEqual(
    [name, join(folder, 'mnt', 'models', 'x.gguf'), file].map(path => ({ path, real: file, file: true })),
  )
})

test.each([['relative/path'], ['/nowhere/at/all'], ['/tmp\n/x'], ['']])('%j has no path', async path => {
  expect(await resolvedPathsOf(path)).toEqual([])
})

test('links that form a cycle have no path', async () => {
  const folder = temporary()
  symlinkSync(join(folder, 'b'), join(folder, 'a'))
  symlinkSync(join(folder, 'a'), join(folder, 'b'))
  expect(await resolvedPathsOf(join(folder, 'a'))).toEqual([])
})

test('a program comes with its environment, and never with a whole home', async () => {
  const home = realpathSync(temporary())
  const guarded = { dataDir: join(home, '.local', 'share', 'infer'), homes: [home], writable: [] }
  const seen = async (program: string, path = '/usr/bin:/bin') =>
    (await programPaths(program, path, guarded)).map(({ path: at }) => at)

  const conda = put(join(home, 'miniconda3', 'envs', 'vllm', 'bin', 'vllm'), '', 0o755)
  mkdirSync(join(home, 'miniconda3', 'envs', 'vllm', 'conda-meta'))
  expect(await seen(conda)).toContain(join(home, 'miniconda3', 'envs', 'vllm'))

  const shim = put(join(home, '.pyenv', 'shims', 'vllm'), '#!/usr/bin/env bash\n', 0o755)
  expect(await seen(shim)).toContain(join(home, '.pyenv'))

  const local = put(join(home, '.local', 'bin', 'server'), '', 0o755)
  put(join(home, '.local', 'lib', 'x.so'))
  put(join(home, '.local', 'share', 'keyrings', 'x'))
  expect(await seen(local)).toEqual([local, join(home, '.local', 'bin'), join(home, '.local', 'lib')])

  const alone = put(join(home, 'server'), '', 0o755)
  expect(await seen(alone)).toEqual([alone])
  expect(await seen('server', `${home}:/usr/bin`)).toEqual([alone])
  expect(await seen('/nowhere/server')).toEqual([])

  const script = put(join(home, 'serve'), '#!/usr/bin/env -S server --x\n', 0o755)
  expect(await seen(script, `${home}:/usr/bin`)).toEqual([script, alone])
  const loop = put(join(home, 'loop'), `#!${join(home, 'loop')}\n`, 0o755)
  expect(new Set(await seen(loop))).toEqual(new Set([loop]))
})

test('a program in a folder with another name comes with that folder, and behind a link with both', async () => {
  const home = realpathSync(temporary())
  const dataDir = join(home, '.local', 'share', 'infer')
  const seen = async (program: string) => {
    const found = await programPaths(program, '/usr/bin:/bin', { dataDir, homes: [home], writable: [] })
    return new Set(found.map(({ path }) => path))
  }
  const real = put(join(home, 'llama-b1', 'llama-server'), '', 0o755)
  put(join(home, 'llama-b1', 'libllama.so'))
  expect(await seen(real)).toEqual(new Set([real, dirname(real)]))
  const link = put(join(home, 'tools', 'x')).replace(/x$/, 'llama-server')
  symlinkSync('../llama-b1/llama-server', link)
  expect(await seen(link)).toEqual(new Set([link, real, dirname(link), dirname(real)]))
  // Not the data directory, nor a folder that contains it.
  for (const folder of [dataDir, join(dataDir, 'engines'), dirname(dataDir), home]) {
    const program = put(join(folder, 'server'), '', 0o755)
    expect(await seen(program), program).toEqual(new Set([program]))
  }
})

test.skipIf(!hasCompiler)('shared libraries are found by the RPATH of the program and of its libraries', () => {
  const folder = realpathSync(temporary())
  const program = buildProgram(folder)
  expect(new Set(sharedLibraries(program))).toEqual(
    new Set([
      expect.stringMatching(/^\/lib.*\/ld-/),
      join(folder, 'build', 'libone.so'),
      join(folder, 'deep', 'libtwo.so'),
    ]),
  )
  expect(sharedLibraries(put(join(folder, 'script'), '#!/bin/sh\n'))).toEqual([])
  // A header that declares more than the file contains.
  const header = Buffer.from('7f454c4602010100', 'hex')
  writeFileSync(join(folder, 'broken'), Buffer.concat([header, Buffer.alloc(56, 0xff)]))
  expect(sharedLibraries(join(folder, 'broken'))).toEqual([])
})

test('paths in the command are visible, except the data directory and a home', async () => {
  const home = realpathSync(temporary())
  const dataDir = join(home, 'data')
  const secret = put(join(dataDir, 'infer.db'))
  const config = put(join(home, 'engine', 'config.yaml'))
  const script = put(join(home, 'engine', 'serve.py'))
  symlinkSync(secret, join(home, 'engine', 'link'))
  const guarded = { configuredVariables: [], dataDir, homes: [home], writable: [] }
  const seen = async (...args: string[]) =>
    (await commandPaths(['python', ...args], {}, guarded)).map(({ path }) => path)
  expect(await seen('--config', config)).toEqual([config])
  expect(await seen(`--config=${config}`)).toEqual([config])
  expect(await seen(script)).toEqual([script, join(home, 'engine'), join(home, 'engine')])
  // The manifest of a Vulkan driver, and the driver.
  const driver = put(join(home, 'driver', 'lib.so'))
  const manifest = put(join(home, 'driver', 'icd.json'))
  writeFileSync(manifest, JSON.stringify({ ICD: { library_path: './lib.so' } }))
  const variables = { VK_DRIVER_FILES: `${manifest}:/nowhere.json` }
  expect((await commandPaths(['x'], variables, guarded)).map(({ path }) => path)).toEqual([manifest, driver])
  for (const path of [
    secret,
    dataDir,
    home,
    dirname(home),
    '/',
    '/tmp',
    '/proc/1/root',
    '/dev/null',
    join(home, 'engine', 'link'),
  ])
    expect(await seen(path), path).toEqual([])
  // A script directly in a home does not make the home visible.
  expect(await seen(put(join(home, 'serve.sh')))).toEqual([join(home, 'serve.sh')])
})

test('in /dev only the files of the GPUs of an engine are included', async () => {
  const dev = temporary()
  for (const name of ['nvidia0', 'nvidiactl', 'nvidia-uvm', 'nvidia-caps', 'dri', 'kfd', 'dxg', 'infiniband'])
    mkdirSync(join(dev, name))
  for (const name of ['sda', 'vda1', 'mem', 'kvm', 'null', 'fuse', 'loop0', 'input', 'tty1']) mkdirSync(join(dev, name))
  const seen = async (...devices: DeviceFiles[]) =>
    (await readSystem({ dev, devices })).devices.map(({ path }) => basename(path))
  expect(await seen()).toEqual(['infiniband'])
  expect(await seen('nvidia')).toEqual(['dxg', 'infiniband', 'nvidia-caps', 'nvidia-uvm', 'nvidia0', 'nvidiactl'])
  expect(await seen('kfd', 'dri')).toEqual(['dri', 'infiniband', 'kfd'])
  expect(await seen('dri')).toEqual(['dri', 'infiniband'])
  expect((await readSystem({ dev: '/nowhere' })).devices).toEqual([])
})

test('the mount of a path, and the flags that it must keep', () => {
  const table = mountTable(
    '1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /mnt rw,nosuid,relatime master:1 - ext4 b rw\n3 1 8:3 / /mnt ro,noatime - ext4 c rw\n',
  )
  expect(mountAt('/mnt/x', table)?.options).toEqual(['ro', 'noatime'])
  expect(mountOptions(mountAt('/mnt/x', table))).toEqual(['noatime'])
  expect(mountOptions(mountAt('/mntx', table))).toEqual(['strictatime'])
  expect(mountOptions(undefined)).toEqual([])
})

const tool = { name: 'unshare' as const, programs: {}, userNamespace: true, ownProc: true, network: true }
const all: SandboxSupport = { tool }
const withoutNetworkNamespace: SandboxSupport = { tool: { ...tool, network: false } }
const none: SandboxSupport = { tool: null, why: 'x' }

test.each([
  ['strict', all, 'strict', null],
  ['files', all, 'files', null],
  ['none', none, 'none', null],
  ['strict', withoutNetworkNamespace, 'files', /network namespace/],
  ['files', withoutNetworkNamespace, 'files', null],
  ['strict', none, 'none', /cannot be enforced on this machine: x/],
  ['files', none, 'none', /cannot be enforced on this machine: x/],
] as const)('%s is enforced as far as the machine can', (level, support, inForce, missing) => {
  const found = effectiveLevel(level, support)
  expect(found.level).toBe(inForce)
  if (missing === null) expect(found.missing).toBeNull()
  else expect(found.missing).toMatch(missing)
  expect(sandboxRefusal('m', { level, required: true }, support) === undefined).toBe(missing === null)
  expect(sandboxRefusal('m', { level, required: false }, support)).toBeUndefined()
})

test('a sandbox that cannot be enforced is logged once, at the start', () => {
  expect(sandboxWarning(all)).toBeUndefined()
  expect(sandboxWarning(withoutNetworkNamespace)).toMatch(/can reach the network/)
  expect(sandboxWarning(none)).toMatch(/without a sandbox and can read the data directory/)
})

test.each([
  ['files', '1', "FileNotFoundError: No such file or directory: '/srv/x'", true],
  ['strict', '127', '', true],
  ['files', '1', 'OSError: [Errno 30] Read-only file system', true],
  ['files', '1', "Error: Cannot find module '/home/u/engine/node_modules/fastify'", true],
  ['files', '1', "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'fastify' imported from /srv/x.mjs", true],
  ['strict', '1', "ModuleNotFoundError: No module named 'vllm'", true],
  ['files', '1', "/usr/bin/python3: Error while finding module specification: No module named 'vllm'", true],
  ['files', '1', 'error while loading shared libraries: libx.so: cannot open shared object file', true],
  ['files', '1', "OSError: libcudart.so.12: Can't open shared object", true],
  ['files', '1', 'CUDA out of memory', false],
  ['files', '0', 'permission denied', false],
  ['none', '127', 'not found', false],
] as const)('a hint at %s, status %s, %s: %s', (level, status, words, expected) => {
  expect(sandboxHint(level, status, words) !== '').toBe(expected)
})

test('the hint for an engine that was loading names the path of the machine that its sandbox lacks', async () => {
  const here = import.meta.filename
  const words = `FileNotFoundError: [Errno 2] No such file or directory: '${here}'.`
  const isVisible = (path: string): boolean => path === '/usr'
  expect(await absentPath(words, { isVisible })).toBe(here)
  expect(await absentPath(words, { isVisible: () => true })).toBeUndefined()
  expect(await absentPath("cannot open '/no/such/file' or /usr", { isVisible })).toBeUndefined()
  expect(sandboxHint('files', '1', words, here)).toBe(
    `It ran in the sandbox 'files', in which ${here} is absent: add it to 'sandbox_read' or 'sandbox_write', or choose another 'sandbox'.`,
  )
})

test('the probe names what is missing where nothing works', async () => {
  const support = await probeWith([])
  if (support.tool !== null) return expect(support.tool.name).toBe('unshare')
  expect(support.why).toContain('bwrap is not installed')
})
