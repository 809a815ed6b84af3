import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { estimate } from '../../gpu/estimate.ts'

const directory = mkdtempSync(join(tmpdir(), 'infer-size-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const MiB = 2 ** 20
const file = (name: string, megabytes: number): string => {
  const path = join(directory, name)
  writeFileSync(path, '')
  truncateSync(path, megabytes * MiB)
  return path
}

test('what the configuration says counts', async () => {
  expect(await estimate({ memory: 5, source: file('said.gguf', 10) }, 'cpu')).toBe(5)
})

test('a file takes a fifth more than it is, and what every engine takes', async () => {
  expect(await estimate({ source: file('one.gguf', 1000) }, 'cpu')).toBe(1200 * MiB + 256 * MiB)
  expect(await estimate({ source: file('one.gguf', 1000) }, 'nvidia')).toBe(1200 * MiB + 1024 * MiB)
})

test('a folder is the sum of its files, through links as hub caches have them', async () => {
  const folder = join(directory, 'hub')
  mkdirSync(join(folder, 'snapshots'), { recursive: true })
  truncateSync(file('blob', 0), 500 * MiB)
  symlinkSync(join(directory, 'blob'), join(folder, 'snapshots', 'model.safetensors'))
  writeFileSync(join(folder, 'config.json'), '')
  expect(await estimate({ source: folder }, 'cpu')).toBe(600 * MiB + 256 * MiB)
})

test('a folder that contains itself does not go on for ever', async () => {
  const loop = join(directory, 'loop')
  mkdirSync(loop)
  symlinkSync(loop, join(loop, 'again'))
  expect(await estimate({ source: loop }, 'cpu')).toBeGreaterThan(0)
})

test('a name that is no file has no size; no source at all is only the engine', async () => {
  expect(await estimate({ source: 'org/model' }, 'nvidia')).toBeNull()
  expect(await estimate({}, 'cpu')).toBe(256 * MiB)
})
