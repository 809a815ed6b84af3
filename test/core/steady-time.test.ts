import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSteadyTime } from '../../core/steady-time.ts'

const hour = 3_600_000

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'infer-steady-'))
  onTestFinished(() => rmSync(made, { recursive: true }))
  return made
}

test('steady time continues over a restart of the server, whatever happened to the clock', () => {
  const dataDir = folder()
  const start = 1_700_000_000_000
  const machine = { bootId: 'a', uptimeMs: 5 * hour, wallMs: start }
  const near = (value: number, expected: number) => expect(Math.abs(value - expected)).toBeLessThan(60_000)
  near(openSteadyTime(dataDir, machine).now(), start)
  // An hour later the clock is 26 hours ahead, or behind.
  const later = { ...machine, uptimeMs: 6 * hour }
  near(openSteadyTime(dataDir, { ...later, wallMs: start + 26 * hour }).now(), start + hour)
  near(openSteadyTime(dataDir, { ...later, wallMs: start - 26 * hour }).now(), start + hour)
  // After a reboot of the machine only its clock is left.
  near(openSteadyTime(dataDir, { bootId: 'b', uptimeMs: hour, wallMs: start + 30 * hour }).now(), start + 30 * hour)
})

test('steady time needs neither a writable data directory nor a boot id of the system', () => {
  const before = Date.now()
  const machine = { bootId: undefined, uptimeMs: 0, wallMs: before }
  // Below a file there can be no folder, for any user.
  const file = join(folder(), 'file')
  writeFileSync(file, '')
  expect(openSteadyTime(file, { ...machine, bootId: 'a' }).now()).toBeGreaterThanOrEqual(before)
  expect(openSteadyTime(folder(), machine).now()).toBeGreaterThanOrEqual(before)
})
