import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { podName } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'
import { sendSignal } from '../../../../gpu/launcher/processes.ts'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { root } from '../../../_fixtures.ts'
import { full } from '../../../_full.ts'
import { underLoad } from '../_kills.ts'
import { temporary } from '../_launch.ts'
import { startFakeCluster } from './_fake-cluster.ts'
import { startKubelet } from './_kubelet.ts'

const missing = full
  ? findProgram('python3', process.env.PATH ?? '')
    ? undefined
    : 'python3 is not installed'
  : 'only in the whole suite'

/** Milliseconds for which the API server is away. */
const awayMs = 3_000

test.skipIf(missing !== undefined)(
  `kills under load with an engine as a pod${missing ? ` (${missing})` : ''}`,
  { timeout: 400_000 },
  async () => {
    const fake = await startFakeCluster(temporary())
    const { server, api, kubelet } = fake
    const kubelets = [kubelet, await startKubelet(api, 'node2')]
    onTestFinished(async () => {
      await kubelets[1]!.close()
      await fake.close()
    })
    // The nodes of the test have the files of this machine.
    const volumes = [{ host_path: root, mount_path: root }]
    const lab = await underLoad({
      pool: { kind: 'kubernetes', card_memory: '80GiB', orphan_grace: '60s', volumes, ...fake.cluster },
      model: { devices: 1, memory: '60GiB', pools: [{ pool: 'far', image: 'engine:1' }] },
    })
    const podOf = (engineId: string) =>
      server.objects.get(`${fake.cluster.namespace}/pods/${podName(`${engineId}-1`)}`)!

    await lab.replaced('engine', async id => {
      const pids = await lab.processesOf(id)
      expect(pids).not.toEqual([])
      for (const pid of pids) sendSignal(pid, 'SIGKILL')
    })
    await lab.kept('API server', async () => {
      server.fail(true)
      await delay(awayMs)
      server.fail(false)
    })
    await lab.replaced('node', async id => {
      const { nodeName } = podOf(id).spec!
      const lost = kubelets.find(({ node }) => node === nodeName)!
      // Kubernetes learns of it later: its pods are listed as running meanwhile.
      lost.die()
      await lost.killAll()
    })
    await lab.restarted('infer')
    await lab.finish()
  },
)
