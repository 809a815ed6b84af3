import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { noWrapper } from '../../../gpu/sandbox/wrapper.ts'
import { killsOf } from '../../_full.ts'
import { toolsHere } from '../sandbox/_tools.ts'
import { endSurvivors, launcherIn, launchOptions, survivors, temporary, until, wrappersHere } from './_launch.ts'

const script = join(import.meta.dirname, '../fixtures/parent.ts')
const rounds = killsOf(6, 20)
const protectedHere = wrappersHere.some(wrapper => wrapper.name !== 'plain')

/** A parent with a running engine and its grandchild. */
async function parentWith(dataDir: string, bootId: string, launchId: string, how = ''): Promise<ChildProcess> {
  onTestFinished(async () => {
    await endSurvivors(launchId)
  })
  const parent = spawn(process.execPath, [script, dataDir, bootId, launchId, how], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void parent.kill('SIGKILL'))
  await once(parent.stdout, 'data')
  return parent
}

async function killed(parent: ChildProcess): Promise<void> {
  const gone = once(parent, 'exit')
  parent.kill('SIGKILL')
  await gone
}

test.skipIf(!protectedHere).each(toolsHere.length > 0 ? ['', 'sandbox'] : [''])(
  `a server that is killed leaves no engine and no grandchild, ${rounds} times, how: '%s'`,
  { timeout: 120_000 },
  async how => {
    const left: number[] = []
    for (let round = 0; round < rounds; round++) {
      const launchId = `round-${how}-${process.pid}-${round}`
      const parent = await parentWith(temporary(), `boot-${round}`, launchId, how)
      const before = await survivors(launchId)
      // The engine, its grandchild, and the shell above them; the wrapper itself does not have the mark everywhere.
      expect(before.length).toBeGreaterThanOrEqual(2)
      await killed(parent)
      const deadline = performance.now() + 2_000
      let after = await survivors(launchId)
      while (after.length > 0 && performance.now() < deadline) after = await survivors(launchId)
      left.push(after.length)
    }
    expect(left).toEqual(Array(rounds).fill(0))
  },
)

test('without a wrapper they keep running, and the next start of the same server kills them first', async () => {
  const dataDir = temporary()
  const launchId = `plain-${process.pid}`
  const parent = await parentWith(dataDir, 'boot-1', launchId, 'plain')
  await killed(parent)
  const left = await survivors(launchId)
  expect(left.length).toBeGreaterThanOrEqual(2)

  // A server with another data directory leaves them alone.
  await launcherIn(temporary(), noWrapper, 'boot-2')
  expect(await survivors(launchId)).toEqual(left)

  const { swept, log } = await launcherIn(dataDir, noWrapper, 'boot-2')
  expect(swept).toEqual({ ended: left.length, left: [] })
  expect(await survivors(launchId)).toEqual([])
  expect(readFileSync(join(dataDir, 'run/launches.json'), 'utf8')).toBe('[]')
  expect(log.lines).toEqual([expect.stringContaining('Ended processes left by an earlier run')])
})

test('the sweep keeps processes of this run, and others that only have the same pid', async () => {
  const dataDir = temporary()
  const launcher = await launcherIn(dataDir, noWrapper, 'boot-1')
  const launchId = `mine-${process.pid}`
  await launcher.start(launchOptions(launchId, []))
  await until(() => launcher.logs(launchId).length > 0)
  const before = await survivors(launchId)
  expect((await launcherIn(dataDir, noWrapper, 'boot-1')).swept).toEqual({ ended: 0, left: [] })
  expect(await survivors(launchId)).toEqual(before)
})
