import { existsSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs'
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
