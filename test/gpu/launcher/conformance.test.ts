import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Launcher } from '../../../gpu/launcher/launcher.ts'
import { openLocalLauncher } from '../../../gpu/launcher/local.ts'
import { cpu } from '../_fleet.ts'
import { describeLauncher, type LauncherPlace } from './_conformance.ts'
import {
  endSurvivors,
  keeperOf,
  keptLog,
  launchOptions,
  noSandbox,
  survivors,
  temporary,
  wrappersHere,
} from './_launch.ts'

const script = join(import.meta.dirname, '../fixtures/parent.ts')
const orphanGraceMs = 2_000

const wrapper = wrappersHere[0]!

/** The local launcher with a keeper, so that its engines may outlive a server. */
describeLauncher('engines of this machine', async (): Promise<LauncherPlace> => {
  const dataDir = temporary()
  const opened: Launcher[] = []
  onTestFinished(async () => {
    for (const one of opened) await one.close()
  })
  return {
    orphanGraceMs,
    async open() {
      const keeper = await keeperOf(dataDir, orphanGraceMs)
      const launcher = await openLocalLauncher({
        dataDir,
        bootId: `boot-${opened.length + 2}`,
        host: process.env,
        wrapper,
        keeper,
        support: noSandbox,
        log: keptLog(),
        devices: async () => ({ devices: [cpu], reason: null, broken: false }),
      })
      opened.push(launcher)
      return launcher
    },
    options: (launchId, flags, more) => launchOptions(launchId, [...flags], more),
    processes: survivors,
    async startAndDie(launchId) {
      onTestFinished(async () => {
        await endSurvivors(launchId)
      })
      const server = spawn(process.execPath, [script, dataDir, 'boot-1', launchId, '', String(orphanGraceMs)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      onTestFinished(() => void server.kill('SIGKILL'))
      await once(server.stdout, 'data')
      const gone = once(server, 'exit')
      server.kill('SIGKILL')
      await gone
    },
  }
})
