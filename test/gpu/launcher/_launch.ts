import { createSecretKey } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Log } from '../../../core/log.ts'
import { openKeeperClient } from '../../../gpu/launcher/keeper-client.ts'
import type { LaunchOptions } from '../../../gpu/launcher/launcher.ts'
import { openLaunches } from '../../../gpu/launcher/launches.ts'
import { openLocalLauncher } from '../../../gpu/launcher/local.ts'
import { openOutputs } from '../../../gpu/launcher/outputs.ts'
import { processesWith } from '../../../gpu/launcher/processes.ts'
import { type SandboxSupport, unconfined } from '../../../gpu/sandbox/level.ts'
import { probeWrapper } from '../../../gpu/sandbox/probe-wrapper.ts'
import { noWrapper, type Wrapper } from '../../../gpu/sandbox/wrapper.ts'
import { fixtureProgram } from '../../_fixtures.ts'

export const fakeEngine: string = fixtureProgram('engine')

/** The wrappers that can be tested here: the best one of this machine, and plain. */
export const wrappersHere: Wrapper[] = [
  ...new Map([(await probeWrapper(process.env)).wrapper, noWrapper].map(wrapper => [wrapper.name, wrapper])).values(),
]

export const noSandbox: SandboxSupport = { tool: null, why: 'not in this test' }

export const temporary = (): string => {
  const directory = mkdtempSync(join(tmpdir(), 'infer-gpu-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** A log that keeps its lines for the test. */
export function keptLog(): Log & { lines: string[] } {
  const lines: string[] = []
  const at =
    (level: string) =>
    (message: string, fields: object = {}): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** The key of every data directory here. */
export const dataKey = createSecretKey(Buffer.alloc(32, 7))

/** Connects to the keeper of a data directory. */
export const keeperOf = (dataDir: string, graceMs: number) =>
  openKeeperClient({ dataDir, key: dataKey, graceMs, log: keptLog() })

export const noDevices = async () => ({ devices: [], reason: null, broken: false })

/** The launches of this machine in its own directory; everything it started is killed after the test. */
export async function launcherIn(
  dataDir: string,
  wrapper: Wrapper,
  bootId = 'boot-1',
  support: SandboxSupport = noSandbox,
  graceMs?: number,
) {
  const log = keptLog()
  const keeper = graceMs === undefined ? undefined : await keeperOf(dataDir, graceMs)
  const started = new Set<string>()
  const launcher = await openLocalLauncher({
    dataDir,
    bootId,
    host: process.env,
    wrapper,
    support,
    log,
    keeper,
    devices: noDevices,
  })
  const launches = await openLaunches({ launcher, outputs: openOutputs(), log })
  onTestFinished(async () => {
    for (const launchId of started) await launches.stop(launchId, 0)
    await launches.close()
  })
  const start = (options: LaunchOptions) => {
    started.add(options.launchId)
    return launches.start(options)
  }
  return { ...launches, start, launcher, swept: launcher.swept, log, keeper }
}

export const launchOptions = (launchId: string, flags: string[], more: Partial<LaunchOptions> = {}): LaunchOptions => ({
  launchId,
  engineId: launchId,
  modelId: 'fake',
  sandbox: unconfined,
  channel: 'socket',
  env: {},
  visibleDevices: { CUDA_VISIBLE_DEVICES: '' },
  argv: [process.execPath, fakeEngine, '--socket', '{socket}', ...flags],
  ...more,
})

/** Every process that belongs to a launch, including those in their own sessions. */
export const survivors = async (launchId: string): Promise<number[]> =>
  (await processesWith({ INFER_LAUNCH_ID: new Set([launchId]) })).map(({ pid }) => pid).sort((a, b) => a - b)

/** Ends what is left of a start, at the end of a test; its wrapper may be ending it too. */
export async function endSurvivors(launchId: string): Promise<void> {
  for (const pid of await survivors(launchId))
    try {
      process.kill(pid, 'SIGKILL')
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown
    }
}

/** Waits until a condition holds. The test's own timeout is the limit. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise(next => setTimeout(next, 10))
}
