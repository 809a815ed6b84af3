import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { describeLauncher, type LauncherPlace } from '../_conformance.ts'
import { endSurvivors, survivors } from '../_launch.ts'
import { newServer, openAt, podOptions, type TestCluster } from './_server.ts'

const script = join(import.meta.dirname, '../../fixtures/kubernetes-parent.ts')

/** What every launcher must do, tried with the pods of a cluster. */
export function describePods(name: string, cluster: () => TestCluster, failLists: LauncherPlace['failLists']): void {
  describeLauncher(name, async (): Promise<LauncherPlace> => {
    const server = newServer()
    const { kubeconfig, namespace } = cluster()
    return {
      orphanGraceMs: 3_000,
      open: () => openAt(cluster(), server),
      options: podOptions,
      processes: survivors,
      async startAndDie(launchId) {
        onTestFinished(() => endSurvivors(launchId))
        const { dataDir, serverId } = server
        const parent = spawn(process.execPath, [script, dataDir, serverId, launchId, kubeconfig, namespace], {
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        onTestFinished(() => void parent.kill('SIGKILL'))
        await once(parent.stdout, 'data')
        const gone = once(parent, 'exit')
        parent.kill('SIGKILL')
        await gone
      },
      ...(failLists && { failLists }),
    }
  })
}
