import { existsSync, lutimesSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { removeStaleOutputs } from '../../../../gpu/launcher/ssh/stale-outputs.ts'
import { keptLog, temporary } from '../_launch.ts'

test('only what an engine has written long ago is removed, and no input', async () => {
  const dataDir = temporary()
  const make = (path: string, seconds: number) => {
    const folder = join(dataDir, 'work', 'engine_1', path)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'image.png'), 'x')
    utimesSync(folder, seconds, seconds)
    return folder
  }
  const [old, fresh, input] = [make('out/job_old', 1), make('out/job_new', 1_000), make('in/job_old', 1)]
  expect(await removeStaleOutputs(dataDir, 500_000, keptLog())).toBe(1)
  expect([old, fresh, input].map(path => existsSync(path))).toEqual([false, true, true])
  expect(await removeStaleOutputs(temporary(), 500_000, keptLog())).toBe(0)
})

test('a link is removed by its own age, wherever it leads', async () => {
  const dataDir = temporary()
  const outputs = join(dataDir, 'work', 'engine_1', 'out')
  mkdirSync(outputs, { recursive: true })
  const log = keptLog()
  const target = join(dataDir, 'kept')
  writeFileSync(target, 'x')
  for (const [name, leads] of [
    ['dangling', join(dataDir, 'nowhere')],
    ['fresh', target],
  ] as const) {
    symlinkSync(leads, join(outputs, name))
    lutimesSync(join(outputs, name), 1, 1)
  }
  expect(await removeStaleOutputs(dataDir, 500_000, log)).toBe(2)
  expect(existsSync(target)).toBe(true)
  expect(log.lines).toEqual([])
})
