import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bookedBytes, excessOf, openMeasuredMemory } from '../../gpu/measured-memory.ts'
import { newModelState, type Resident } from '../../gpu/residency/model-state.ts'
import { newResident } from '../../gpu/residency/new-resident.ts'
import { GiB, modelOf, wantedOf } from './_models.ts'
import { keptLog, temporary } from './launcher/_launch.ts'

function residentOf(engineId: string, gigabytes: number, of: object = {}, id = 'a'): Resident {
  return newResident(newModelState(modelOf(id, of), wantedOf(id, gigabytes), 1), engineId, { devices: ['gpu0'] }, 0)
}
function open(dataDir = temporary()) {
  const log = keptLog()
  return { measured: openMeasuredMemory({ dataDir, log }), log, dataDir }
}

test('what an engine used is known after a restart, for the same settings of the model', () => {
  const { measured, dataDir } = open()
  measured.remember(residentOf('e1', 3), 6 * GiB)
  const again = open(dataDir).measured
  expect(again.remembered(modelOf('a'))).toEqual({ bytes: 6 * GiB, estimate: 3 * GiB })
  expect(again.remembered(modelOf('a', { idle_ttl: 1, description: 'x' }))).not.toBeNull()
  expect(again.remembered(modelOf('a', { memory: '4GiB' }))).toBeNull()
  expect(again.remembered(modelOf('b'))).toBeNull()
})

test('of one engine the most counts, and a newer engine replaces an older one', () => {
  const { measured } = open()
  const bytes = () => measured.remembered(modelOf('a'))!.bytes / GiB
  measured.remember(residentOf('e2', 3), 6 * GiB)
  measured.remember(residentOf('e2', 3), 5 * GiB)
  measured.remember(residentOf('e1', 3), 4 * GiB)
  expect(bytes()).toBe(6)
  measured.remember(residentOf('e3', 3), 4 * GiB)
  expect(bytes()).toBe(4)
})

test('a damaged file is replaced, and nothing is written while the memory is the same', () => {
  const dataDir = temporary()
  const path = join(dataDir, 'measured-memory.json')
  writeFileSync(path, '{"a":{"settings":"x","bytes":"y"},"b":')
  const { measured } = open(dataDir)
  measured.remember(residentOf('e1', 3), 6 * GiB)
  const before = readFileSync(path, 'utf8')
  measured.remember(residentOf('e1', 3), 6 * GiB + 2 ** 20)
  measured.remember(residentOf('e2', 3), 6 * GiB + 2 ** 20)
  expect(readFileSync(path, 'utf8')).toBe(before)
  expect(existsSync(`${path}.new`)).toBe(false)
})

test('the memory of 500 models is kept', () => {
  const { measured } = open()
  for (let at = 0; at <= 500; at++) measured.remember(residentOf('e1', 3, {}, `m${at}`), 6 * GiB)
  expect(measured.remembered(modelOf('m0'))).toBeNull()
  expect(measured.remembered(modelOf('m1'))).not.toBeNull()
})

test('a booking that differs from the measurement is reported once for each engine', () => {
  const { measured, log } = open()
  const [more, less, right] = [residentOf('e1', 3), residentOf('e2', 3, {}, 'b'), residentOf('e3', 3, {}, 'c')]
  for (const bytes of [6 * GiB, 7 * GiB]) measured.reportDrift(more, bytes)
  measured.reportDrift(less, GiB)
  measured.reportDrift(right, 3.2 * GiB)
  expect(log.lines).toEqual([
    expect.stringMatching(/^warn An engine uses more memory than was booked for it/),
    expect.stringMatching(/^info An engine uses less memory than was booked for it/),
  ])
})

test.each([
  { estimate: 3, used: null, limit: 10, booked: 3 },
  { estimate: 3, used: { bytes: 6, estimate: 3 }, limit: 10, booked: 6 },
  // A smaller layout, because other programs use more of the GPU now.
  { estimate: 2, used: { bytes: 6, estimate: 3 }, limit: 10, booked: 5 },
  { estimate: 3, used: { bytes: 2, estimate: 3 }, limit: 10, booked: 3 },
  { estimate: 9, used: { bytes: 11, estimate: 9 }, limit: 10, booked: 10 },
  { estimate: 12, used: { bytes: 14, estimate: 12 }, limit: 10, booked: 12 },
])('of $used, an estimate of $estimate books $booked', ({ estimate, used, limit, booked }) =>
  expect(bookedBytes(estimate, excessOf(used), limit)).toBe(booked),
)
