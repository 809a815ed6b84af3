import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, onTestFinished, test } from 'vitest'
import type { Launcher } from '../../../../gpu/launcher/launcher.ts'
import { openSshLauncher } from '../../../../gpu/launcher/ssh/ssh.ts'
import { full } from '../../../_full.ts'
import { describeLauncher, type LauncherPlace } from '../_conformance.ts'
import { endSurvivors, keptLog, launchOptions, survivors, temporary, until } from '../_launch.ts'
import { noSshServer, openBox } from './_box.ts'

const script = join(import.meta.dirname, '../../fixtures/ssh-parent.ts')
/** Longer than it takes to connect again on a busy machine. */
const orphanGraceMs = 6_000

/** Each test starts infer on the machine again: 15 s of processor time. `connection.test.ts` always runs. */
const missing = full ? noSshServer() : 'only the whole suite tries all that a launcher must do over ssh'
if (missing === undefined) {
  const box = await openBox()
  afterAll(() => box.close())
  let count = 0
  describeLauncher('engines of a machine that is reached by ssh', async (): Promise<LauncherPlace> => {
    const dataDir = temporary()
    const opened: Launcher[] = []
    onTestFinished(async () => {
      for (const one of opened.toReversed()) await one.close()
    })
    const settings = { ...box.settings, orphan_grace: orphanGraceMs }
    const serverId = `server-${++count}`
    return {
      orphanGraceMs,
      async open() {
        const launcher = await openSshLauncher({
          pool: 'box2',
          settings,
          dataDir,
          serverId,
          ssh: box.ssh,
          host: box.host,
          log: keptLog(),
        })
        opened.push(launcher)
        return launcher
      },
      async failLists(fail) {
        if (fail) {
          await box.cut()
          return await box.stop()
        }
        await box.start()
        const listed = () => opened[0]!.list(AbortSignal.timeout(5_000))
        await until(() =>
          listed()
            .then(() => true)
            .catch(() => false),
        )
      },
      options: (launchId, flags, more) => launchOptions(launchId, [...flags], more),
      processes: survivors,
      async startAndDie(launchId) {
        onTestFinished(async () => {
          await endSurvivors(launchId)
        })
        const about = JSON.stringify({ settings, dataDir, serverId, ssh: box.ssh, launchId })
        const server = spawn(process.execPath, [script, about], { stdio: ['ignore', 'pipe', 'inherit'] })
        onTestFinished(() => void server.kill('SIGKILL'))
        await once(server.stdout, 'data')
        const gone = once(server, 'exit')
        server.kill('SIGKILL')
        await gone
      },
    }
  })
} else test('engines of a machine that is reached by ssh', context => context.skip(missing))
