import { createSecretKey } from 'node:crypto'
import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { missingFiles } from '../../core/models/source-files.ts'
import { openCaches } from '../../gpu/caches/caches.ts'
import type { EngineOptions } from '../../gpu/engine.ts'
import { startHash } from '../../gpu/engine-options.ts'
import { weightsOf } from '../../gpu/estimate/model-files.ts'
import { openRefusedFiles } from '../../gpu/placement/refused-files.ts'
import type { SandboxSupport } from '../../gpu/sandbox/level.ts'
import { chat, fake, fleetOf } from './_fleet.ts'
import { keptLog, noSandbox, temporary } from './launcher/_launch.ts'
import { toolsHere } from './sandbox/_tools.ts'

/** Paths that were looked at while nothing else could run in this process. */
const looked = vi.hoisted(() => [] as string[])
vi.mock('node:fs', async load => {
  const real = await load<Record<string, unknown>>()
  const watched = Object.entries(real).map(([name, member]) => {
    if (typeof member !== 'function' || !name.endsWith('Sync')) return [name, member]
    const call = (...given: unknown[]): unknown => {
      looked.push(`${name} ${String(given[0])}`)
      return (member as (...given: unknown[]) => unknown)(...given)
    }
    return [name, Object.assign(call, member)]
  })
  return Object.fromEntries(watched)
})

/** How many looks at this path the threads that read files have at a time, and the most that they had. */
const atOnce = vi.hoisted(() => ({ now: 0, most: 0 }))
vi.mock('node:fs/promises', async load => {
  const real = await load<Record<string, unknown>>()
  const watched = Object.entries(real).map(([name, member]) => {
    if (typeof member !== 'function') return [name, member]
    const call = async (...given: unknown[]): Promise<unknown> => {
      const isWatched = String(given[0]).includes('slow-mount')
      if (isWatched) atOnce.most = Math.max(atOnce.most, ++atOnce.now)
      try {
        return await (member as (...given: unknown[]) => unknown)(...given)
      } finally {
        if (isWatched) atOnce.now--
      }
    }
    return [name, call]
  })
  return Object.fromEntries(watched)
})

const repository = join(import.meta.dirname, '../..')

test.each<[string, SandboxSupport]>([
  ['without a sandbox', noSandbox],
  ...toolsHere.map((tool): [string, SandboxSupport] => [`in a sandbox by ${tool.name}`, { tool }]),
])('while engines start and fail, nothing else waits for the mount of their models, %s', async (_how, sandbox) => {
  // Its name is in none of the paths of the server.
  const mount = join(temporary(), 'slow-mount')
  const source = join(mount, 'model')
  mkdirSync(source, { recursive: true })
  const config = join(mount, 'config.json')
  for (const file of [join(source, 'a.safetensors'), config]) writeFileSync(file, '{}')
  symlinkSync(config, join(source, 'config.json'))
  const sandbox_read = [repository, join(mount, 'absent'), config]
  const model = fake('a', ['--config', config], { source, sandbox_read, sandbox_write: [source] })
  const script = `echo "cannot open ${config}: no such file" >&2; exit 1`
  const failing = fake('b', [], { source, command: ['/bin/sh', '-c', script, '{socket}'] })
  looked.length = 0
  const { fleet } = await fleetOf([model, failing], { sandbox })
  expect((await chat(fleet, model)).text).toContain('Hello')
  await fleet.unload('a')
  await expect(fleet.load(failing)).rejects.toThrow('exited')
  expect(looked.length).toBeGreaterThan(0)
  expect(looked.filter(path => path.includes('slow-mount'))).toEqual([])
})

test('nor while saved conversations are named', async () => {
  const dataDir = temporary()
  const source = join(temporary(), 'slow-mount', 'model.gguf')
  const caches = openCaches({
    dataDir,
    key: createSecretKey(Buffer.alloc(32, 1)),
    settings: { memory: 1 << 20, age: 60_000, disk: false },
    machineBytes: 1 << 30,
    log: keptLog(),
  })
  onTestFinished(async () => {
    const folder = realpathSync(join(dataDir, 'run', 'conversations'))
    await caches.close()
    rmSync(folder, { recursive: true, force: true })
  })
  looked.length = 0
  caches.of(fake('a', [], { source }))
  await caches.folderFor(fake('b', [], { source }))
  expect(looked.filter(path => path.includes('slow-mount'))).toEqual([])
})

test('a model of many files leaves threads to others that read files', async () => {
  const source = join(temporary(), 'slow-mount')
  for (const part of ['', 'text', 'image', 'audio']) {
    mkdirSync(join(source, part), { recursive: true })
    for (const at of [1, 2, 3]) writeFileSync(join(source, part, `model-${at}.safetensors`), '')
  }
  const model = fake('a', [], { source })
  atOnce.most = 0
  expect(await missingFiles(source)).toBeUndefined()
  expect(await weightsOf(source)).toBe(0)
  expect(await openRefusedFiles().add(model, { said: 'no', lies: 'files' })).toBeDefined()
  await startHash(model, { argv: [] } as unknown as EngineOptions, { dataDir: '/nowhere', environment: {} })
  expect(atOnce.most).toBe(1)
})
