import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { full } from '../../../_full.ts'
import { noCluster, type RealCluster, startCluster } from './_cluster.ts'
import { describePods } from './_describe.ts'
import { temporaryFolder } from './_folder.ts'
import { type Kubelet, startKubelet } from './_kubelet.ts'
import { isReady, listed, openAt, podOptions } from './_server.ts'

/** Costs a minute of processor time. */
const absent = noCluster ?? (full ? undefined : 'in the whole suite only')

describe.skipIf(absent !== undefined)(`a real API server${absent ? ` (${absent})` : ''}`, () => {
  let real: RealCluster
  let kubelet: Kubelet
  beforeAll(async () => {
    real = await startCluster(temporaryFolder())
    kubelet = await startKubelet(real.api, 'node1')
  }, 60_000)
  afterAll(async () => {
    await kubelet.close()
    await real.close()
  }, 30_000)

  describePods('engines as pods of a real API server', () => real.cluster, undefined)

  test('an API server that is killed and comes back: nothing is known meanwhile, and nothing is ended', {
    timeout: 90_000,
  }, async () => {
    const launcher = await openAt(real.cluster)
    const launchId = `wkr_${process.pid}r1-1`
    await launcher.start(podOptions(launchId, []), AbortSignal.timeout(30_000))
    const before = await listed(launcher, launchId, isReady)
    await real.kill()
    await expect(launcher.list(AbortSignal.timeout(10_000))).rejects.toThrow(/does not tell the pods of the pool 'k8s'/)
    await expect(launcher.start(podOptions(`${launchId}b`, []), AbortSignal.timeout(10_000))).rejects.not.toMatchObject(
      {
        code: 'worker_error',
      },
    )
    expect(await isReady(before)).toBe(true)
    await real.restart()
    const after = await listed(launcher, launchId, isReady)
    expect(after).toMatchObject({ state: 'running', endpoint: before.endpoint })
    await launcher.stop(launchId, 1_000, AbortSignal.timeout(30_000))
    await listed(launcher, launchId, ({ state }) => state === 'gone')
  })
})
