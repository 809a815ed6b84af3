import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest'
import { full } from '../../../_full.ts'
import { describeLauncher, type LauncherPlace } from '../_conformance.ts'
import { endSurvivors, survivors, temporary } from '../_launch.ts'
import { type Lab, noLab, startLab } from './_lab.ts'
import { failingSqueue, newServer, openAt, slurmOptions, slurmSettings } from './_server.ts'

const script = join(import.meta.dirname, '../../fixtures/slurm-parent.ts')

/** Costs 25 seconds of processor time. */
const absent = noLab ?? (full ? undefined : 'in the whole suite only')

describe.skipIf(absent !== undefined)(`Slurm${absent ? ` (${absent})` : ''}`, () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await startLab()
  })
  afterAll(() => lab.close(), 30_000)

  describeLauncher('engines as Slurm jobs', async (): Promise<LauncherPlace> => {
    const server = newServer()
    const { path, fail } = failingSqueue(temporary())
    return {
      orphanGraceMs: slurmSettings.orphan_grace,
      open: () => openAt(lab, server, {}, path),
      options: slurmOptions,
      processes: survivors,
      async startAndDie(launchId) {
        onTestFinished(() => endSurvivors(launchId))
        const { dataDir, serverId } = server
        const parent = spawn(process.execPath, [script, dataDir, serverId, launchId], {
          env: lab.env,
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        onTestFinished(() => void parent.kill('SIGKILL'))
        await once(parent.stdout, 'data')
        const gone = once(parent, 'exit')
        parent.kill('SIGKILL')
        await gone
      },
      failLists: fails => (fails ? writeFileSync(fail, '') : rmSync(fail)),
    }
  })
})
