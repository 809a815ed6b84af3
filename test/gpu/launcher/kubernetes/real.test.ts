import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { manifestObjects } from '../../../../cli/kubernetes/server-manifest.ts'
import { orAbsent } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'
import { leaderWorkerSets, podName } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'
import { labels } from '../../../../gpu/launcher/kubernetes/pod-state.ts'
import { full } from '../../../_full.ts'
import { fake as fakeModel } from '../../_fleet.ts'
import { until } from '../_launch.ts'
import { createAll, noCluster, noControllers, noSetController, type RealCluster, startCluster } from './_cluster.ts'
import { describePods } from './_describe.ts'
import { temporaryFolder } from './_folder.ts'
import { type Kubelet, startKubelet } from './_kubelet.ts'
import { doctorOf, isReady, listed, openAt, podOptions, spanningOptions } from './_server.ts'
import { startSetController } from './_set-controller.ts'

/** Costs a minute of processor time. */
const absent = noCluster ?? (full ? undefined : 'in the whole suite only')

describe.skipIf(absent !== undefined)(`a real API server${absent ? ` (${absent})` : ''}`, () => {
  let real: RealCluster
  let kubelet: Kubelet
  beforeAll(async () => {
    real = await startCluster(temporaryFolder())
    kubelet = await startKubelet(real.api, 'node1')
  })
  afterAll(async () => {
    await kubelet.close()
    await real.close()
  })

  describePods('engines as pods of a real API server', () => real.cluster, undefined)

  test('every object of the manifest is accepted, and each of its fields known', async () => {
    const objects = manifestObjects({ namespace: 'other', image: 'registry.example.com/infer:1', storage: '50Gi' })
    expect(await createAll(real.api, 'other', objects)).toMatchObject(objects)
  })

  test('the role lets the server count GPUs, and those that others have', async () => {
    const signal = AbortSignal.timeout(10_000)
    const create = (path: string, body: object) =>
      real.api.request({ method: 'POST', path, body: { apiVersion: 'v1', ...body } }, signal)
    const resource = { 'nvidia.com/gpu': '8' }
    const status = { allocatable: resource, capacity: resource, conditions: [{ type: 'Ready', status: 'True' }] }
    const path = '/api/v1/nodes/node2'
    await create('/api/v1/nodes', { kind: 'Node', metadata: { name: 'node2' } })
    await real.api.request({ method: 'PATCH', path, body: { spec: { taints: [] } } }, signal)
    await real.api.request({ method: 'PATCH', path: `${path}/status`, body: { status } }, signal)
    const limits = { 'nvidia.com/gpu': '3' }
    await create('/api/v1/namespaces/default/pods', {
      kind: 'Pod',
      metadata: { name: 'of-others' },
      spec: { nodeName: 'node2', containers: [{ name: 'a', image: 'a', resources: { limits } }] },
    })
    const { devices } = await (await openAt(real.cluster)).capacity(signal)
    expect(devices.filter(({ id }) => id.startsWith('node2/'))).toHaveLength(5)
  })

  test('doctor finds all that the role allows, a quota that is used up, and a namespace that is not there', {
    timeout: 60_000,
  }, async () => {
    const model = fakeModel('big', [], { pools: [{ pool: 'k8s', image: 'engine:1' }], devices: 1 })
    const found = await doctorOf(real.cluster, [model])
    expect([...found.values()].filter(({ state }) => state !== 'fine')).toEqual([])
    expect([...found.keys()]).toContain('trial pod')

    const signal = AbortSignal.timeout(10_000)
    const path = `/api/v1/namespaces/${real.cluster.namespace}/resourcequotas`
    const hard = { 'requests.nvidia.com/gpu': '0' }
    const metadata = { name: 'gpus' }
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard } }
    await real.api.request({ method: 'POST', path, body: quota }, signal)
    // No controller counts for it here.
    const status = { hard, used: hard }
    await real.api.request({ method: 'PATCH', path: `${path}/gpus/status`, body: { status } }, signal)
    onTestFinished(() => void real.api.request({ method: 'DELETE', path: `${path}/gpus` }, AbortSignal.timeout(10_000)))
    await until(async () => (await doctorOf(real.cluster, [model])).get('pod')?.state === 'broken')
    const refused = (await doctorOf(real.cluster, [model])).get('pod')
    expect(refused?.detail).toMatch(/^Kubernetes refuses a pod with 1 GPU: .*exceeded quota: gpus/)
    expect(refused?.advice).toMatch(/^Ask for a larger quota/)
    const nowhere = { kubeconfig: real.administrator, namespace: 'nowhere' }
    expect((await doctorOf(nowhere, [model])).get('pod')).toMatchObject({
      detail: 'Kubernetes refuses a pod with 1 GPU: namespaces "nowhere" not found',
      advice: expect.stringContaining('kubectl create namespace nowhere') as string,
    })
  })

  test.skipIf(noControllers !== undefined)(
    'a set lives for as long as a server is there, and for its grace after that',
    { timeout: 120_000 },
    async () => {
      await real.startControllers()
      const sets = noSetController === undefined ? undefined : startSetController(real.api)
      onTestFinished(() => sets?.close())
      const launchId = `wkr_${process.pid}s1-1`
      const name = podName(launchId)
      const namespace = real.cluster.namespace
      const signal = AbortSignal.timeout(110_000)
      const job = async () =>
        (await orAbsent(() =>
          real.api.request({ path: `/apis/batch/v1/namespaces/${namespace}/jobs/${name}` }, signal),
        )) as { spec: { activeDeadlineSeconds: number } } | undefined
      const set = () =>
        orAbsent(() =>
          real.api.request(
            { path: `/apis/${leaderWorkerSets.group}/v1/namespaces/${namespace}/${leaderWorkerSets.resource}/${name}` },
            signal,
          ),
        )
      const pods = async () => {
        const path = `/api/v1/namespaces/${namespace}/pods`
        const query = { labelSelector: `${labels.launch}=${launchId}` }
        return ((await real.api.request({ path, query }, signal)) as { items: object[] }).items
      }
      const launcher = await openAt(real.cluster)
      await launcher.start(spanningOptions(launchId, 2), signal)
      await listed(launcher, launchId, isReady)
      await until(async () => ((await job())?.spec.activeDeadlineSeconds ?? 0) > 9)
      expect(await pods()).toHaveLength(2)
      await launcher.leave()
      await until(async () => (await pods()).length === 0)
      await until(async () => (await job()) === undefined && (await set()) === undefined)
    },
  )

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
