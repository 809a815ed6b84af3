import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLoadTimes } from '../../gpu/load-times.ts'
import { GiB, modelOf } from './_models.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }
const openIn = (dataDir: string) => openLoadTimes({ dataDir, log })

test('load times survive a restart; other settings have their own; another model is judged by its size', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-load-times-'))
  const times = openIn(dataDir)
  const model = modelOf('a')
  expect(times.averageMs(model)).toBeNull()
  times.loaded(model, 10 * GiB, 12_000)
  const again = openIn(dataDir)
  expect(again.averageMs(model)).toBe(12_000)
  // Only the server's part of the model has changed.
  expect(again.averageMs(modelOf('a', { max_queue: 1 }))).toBe(12_000)
  expect(again.first(modelOf('b'), 10 * GiB)).toEqual({ ms: 12_000, isLikely: true })
  expect(again.first(modelOf('b', { command: ['other'] }), 10 * GiB)).toMatchObject({ isLikely: false })
  again.loaded(modelOf('a', { args: ['--slow'] }), 10 * GiB, 40_000)
  expect(openIn(dataDir).averageMs(modelOf('a', { args: ['--slow'] }))).toBe(40_000)
})

test('a damaged file is no obstacle', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-load-times-'))
  writeFileSync(join(dataDir, 'load-times.json'), '{"a": {"loadMs": "long"}, "b"')
  openIn(dataDir).loaded(modelOf('a'), GiB, 1_000)
  expect(JSON.parse(readFileSync(join(dataDir, 'load-times.json'), 'utf8'))).toMatchObject({
    a: { figures: { loadMs: 1_000 } },
  })
})
