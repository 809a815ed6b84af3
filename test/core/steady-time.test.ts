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

test('steady time goes on over a restart of the server, whatever the clock did meanwhile', () => {
  const dataDir = folder()
  const start = 1_700_000_000_000
  const machine = { bootId: 'a', uptimeMs: 5 * hour, wallMs: start }
  const near = (value: number, expected: number) => expect(Math.abs(value - expected)).toBeLessThan(60_000)
  near(openSteadyTime(dataDir, machine).now(), start)
  // An hour later the clock says 26 hours later, or earlier.
  const later = { ...machine, uptimeMs: 6 * hour }
  near(openSteadyTime(dataDir, { ...later, wallMs: start + 26 * hour }).now(), start + hour)
  near(openSteadyTime(dataDir, { ...later, wallMs: start - 26 * hour }).now(), start + hour)
  // After a start of the machine its clock is all there is.
  near(openSteadyTime(dataDir, { bootId: 'b', uptimeMs: hour, wallMs: start + 30 * hour }).now(), start + 30 * hour)
})

test('steady time does not need a data directory that can be written, or a system that tells', () => {
  const before = Date.now()
  const machine = { bootId: undefined, uptimeMs: 0, wallMs: before }
  // Below a file there is no folder, whoever runs this.
  const file = join(folder(), 'file')
  writeFileSync(file, '')
  expect(openSteadyTime(file, { ...machine, bootId: 'a' }).now()).toBeGreaterThanOrEqual(before)
  expect(openSteadyTime(folder(), machine).now()).toBeGreaterThanOrEqual(before)
})
