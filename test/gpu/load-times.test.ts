import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EnginePlacement } from '../../core/models/engine-placement.ts'
import { openBenchmarks } from '../../gpu/benchmarks.ts'
import { openLoadTimes } from '../../gpu/load-times.ts'
import { bytesPerMs, expectedLoadMs, newModelState, type Resident, startMs } from '../../gpu/residency/model-state.ts'
import { GiB, modelOf, wantedOf } from './_models.ts'

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

test('how long engines of a pool wait for a machine is kept apart from how long they load, over restarts', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-load-times-'))
  const state = newModelState(modelOf('a'), wantedOf('a', 10, { pool: 'lab' }), 1)
  openIn(dataDir).loadedInPools(state.model, { lab: { queueMs: 600_000, loadMs: 40_000 } })
  openIn(dataDir).recall(state.model, state.durations)
  expect(expectedLoadMs(state)).toBe(640_000)
  expect(expectedLoadMs(state, 'other')).toBe(startMs + (10 * GiB) / bytesPerMs)
})

test('a damaged file is no obstacle', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-load-times-'))
  writeFileSync(join(dataDir, 'load-times.json'), '{"a": {"loadMs": "long"}, "b"')
  openIn(dataDir).loaded(modelOf('a'), GiB, 1_000)
  expect(JSON.parse(readFileSync(join(dataDir, 'load-times.json'), 'utf8'))).toMatchObject({
    a: { figures: { loadMs: 1_000 } },
  })
})

test('a benchmark survives a restart, for the settings that it was measured with; a damaged one is forgotten', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-benchmarks-'))
  const run = {
    requests: 4,
    input_tokens: 2_000,
    output_tokens: 400,
    input_tokens_per_second: 812.5,
    output_tokens_per_second: 41.7,
    time_to_first_token_ms: 90.2,
  }
  const ready = [
    { engineId: 'wkr_1', bytes: GiB, state: 'ready', serves: { model: modelOf('a') } },
  ] as unknown as Resident[]
  const engines = { placement: () => ({ detail: 'on GPU 0' }) as EnginePlacement, loads: () => [] }
  const benchmark = openBenchmarks({ dataDir, log }, () => 1_500).keep(modelOf('a'), [run], ready, engines)
  expect(benchmark).toEqual({ measured_at: 1, runs_on: 'on GPU 0', memory_bytes: GiB, load_ms: null, runs: [run] })
  expect(() => openBenchmarks({ dataDir, log }).keep(modelOf('a'), [run], [], engines)).toThrow('Measure again')
  const again = openBenchmarks({ dataDir, log })
  expect(again.of(modelOf('a', { max_queue: 1 }))).toEqual(benchmark)
  expect(again.of(modelOf('a', { args: ['--slow'] }))).toBeNull()
  const path = join(dataDir, 'benchmarks.json')
  writeFileSync(path, readFileSync(path, 'utf8').replace('41.7', '"fast"'))
  expect(openBenchmarks({ dataDir, log }).of(modelOf('a'))).toBeNull()
})
