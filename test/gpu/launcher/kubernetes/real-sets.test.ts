import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { leaderWorkerSets, podName } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'
import type { Launch, Launcher } from '../../../../gpu/launcher/launcher.ts'
import { full } from '../../../_full.ts'
import { survivors, until } from '../_launch.ts'
import { noSetController, type RealCluster, startCluster } from './_cluster.ts'
import { temporaryFolder } from './_folder.ts'
import { type Kubelet, startKubelet, type TakenPod } from './_kubelet.ts'
import { isGone, isReady, listed, newServer, openAt, spanningOptions } from './_server.ts'

/** Costs two minutes of processor time. */
const absent = noSetController ?? (full ? undefined : 'in the whole suite only')
const signal = () => AbortSignal.timeout(120_000)
let count = 0

interface Item {
  metadata: { name: string; uid: string; labels: Record<string, string>; ownerReferences?: { kind: string }[] }
  spec: { containers: { env: { name: string; value?: string }[] }[]; restartPolicy: string }
}

describe.skipIf(absent !== undefined)(`the controller of LeaderWorkerSet${absent ? ` (${absent})` : ''}`, () => {
  let real: RealCluster
  let kubelet: Kubelet
  /** Where the first pods of engines go. */
  let firstNode = 'node1'
  const nodeOf = ({ metadata }: TakenPod) => (/-0-\d+$/.test(metadata.name) ? 'node1' : firstNode)
  beforeAll(async () => {
    real = await startCluster(temporaryFolder())
    kubelet = await startKubelet(real.api, 'node1', pod => nodeOf(pod) === 'node1')
    await real.startControllers()
  })
  afterAll(async () => {
    await kubelet.close()
    await real.close()
  })

  const newId = () => `wkr_${process.pid}t${++count}-1`
  async function started(
    launcher: Launcher,
    nodes: number,
    flags: readonly string[] = [],
    isUp: (launch: Launch) => boolean | Promise<boolean> = isReady,
  ) {
    const launchId = newId()
    await launcher.start(spanningOptions(launchId, nodes, flags), signal())
    return { launchId, launch: await listed(launcher, launchId, isUp) }
  }
  const pathOf = (group: string, resource: string) => `/${group}/v1/namespaces/${real.api.namespace}/${resource}`
  const sets = () => pathOf(`apis/${leaderWorkerSets.group}`, leaderWorkerSets.resource)
  async function itemsOf(launchId: string, path: string) {
    const { items } = (await real.api.request({ path }, signal())) as { items: Item[] }
    return items.filter(({ metadata: { name } }) => name.startsWith(podName(launchId)))
  }
  const podsOf = (launchId: string) => itemsOf(launchId, pathOf('api', 'pods'))
  /** All that there is of a launch, as `pods/infer-x-0`. */
  async function objectsOf(launchId: string): Promise<string[]> {
    const paths = [
      ...['pods', 'services', 'secrets'].map(one => pathOf('api', one)),
      ...['statefulsets', 'controllerrevisions'].map(one => pathOf('apis/apps', one)),
      pathOf('apis/batch', 'jobs'),
      sets(),
    ]
    const all = await Promise.all(
      paths.map(async path =>
        (await itemsOf(launchId, path)).map(({ metadata }) => `${path.split('/').at(-1)}/${metadata.name}`),
      ),
    )
    return all.flat()
  }
  const untilNothingIsLeft = (launchId: string) =>
    until(async () => (await survivors(launchId)).length === 0 && (await objectsOf(launchId)).length === 0)

  test('makes the pods that infer expects, and a stop leaves nothing', async () => {
    const launcher = await openAt(real.cluster)
    const { launchId, launch } = await started(launcher, 3)
    expect(launch).toMatchObject({ state: 'running', node: 'node1, node1, node1' })
    const name = podName(launchId)
    const pods = await podsOf(launchId)
    expect(pods.map(({ metadata }) => metadata.name)).toEqual([`${name}-0`, `${name}-0-1`, `${name}-0-2`])
    for (const [rank, { metadata, spec }] of pods.entries()) {
      expect(metadata.labels).toMatchObject({
        'infer/launch': launchId,
        'leaderworkerset.sigs.k8s.io/worker-index': String(rank),
      })
      for (const { env } of spec.containers)
        expect(env).toEqual(
          expect.arrayContaining([
            { name: leaderWorkerSets.address, value: `${name}-0.${name}.${real.api.namespace}` },
            { name: leaderWorkerSets.rank, value: String(rank) },
          ]),
        )
    }
    await launcher.stop(launchId, 5_000, signal())
    expect(await listed(launcher, launchId, isGone)).toMatchObject({ reason: null })
    let output = ''
    for await (const { bytes } of launcher.logs(launchId, 0, signal())) output += Buffer.from(bytes).toString()
    expect(output).toMatch(/^part 0 of 3 .* as 127\.0\.0\.1$/m)
    for (const rank of [1, 2]) expect(output).toMatch(new RegExp(`^rank ${rank}: part ${rank} of 3 .*headless$`, 'm'))
    await untilNothingIsLeft(launchId)
    expect(launcher.log.lines).toEqual([])
  })

  test('ends all parts at once', async () => {
    const launcher = await openAt(real.cluster)
    const { launchId } = await started(launcher, 3, ['--ignore-term'])
    const stopping = launcher.stop(launchId, 20_000, signal())
    await until(async () => (await podsOf(launchId)).length === 1)
    const [pod] = await podsOf(launchId)
    expect(pod?.metadata.name).toBe(`${podName(launchId)}-0`)
    expect((await survivors(launchId)).length).toBeGreaterThan(0)
    await stopping
    await launcher.stop(launchId, 0, signal())
    await listed(launcher, launchId, isGone)
    await untilNothingIsLeft(launchId)
  })

  test('pods on other nodes end though the node of the first is lost', async () => {
    firstNode = 'node2'
    onTestFinished(() => void (firstNode = 'node1'))
    const lost = await startKubelet(real.api, 'node2', pod => nodeOf(pod) === 'node2')
    onTestFinished(() => lost.close())
    const launcher = await openAt(real.cluster)
    const { launchId, launch } = await started(launcher, 2)
    expect(launch.node).toBe('node2, node1')
    lost.die()
    await launcher.stop(launchId, 1_000, signal())
    await until(async () => (await podsOf(launchId)).length === 1)
    expect((await podsOf(launchId))[0]?.metadata.name).toBe(`${podName(launchId)}-0`)
    // As Kubernetes does when the node is removed.
    const path = `${pathOf('api', 'pods')}/${podName(launchId)}-0`
    await real.api.request({ method: 'DELETE', path, body: { gracePeriodSeconds: 0 } }, signal())
    await listed(launcher, launchId, isGone)
    await lost.killAll()
    await untilNothingIsLeft(launchId)
  })

  test('the end of a part ends all, and so does the deletion of a pod, which is made again', async () => {
    const launcher = await openAt(real.cluster)
    const { launchId, launch } = await started(launcher, 2, ['--exit-of', '1', '--ignore-term'], isGone)
    expect(launch).toMatchObject({ status: '7', reason: "Its part on the node 'node1' has ended with 7." })
    await untilNothingIsLeft(launchId)
    for (const part of ['0', '0-1']) {
      const next = await started(launcher, 2)
      const path = `${pathOf('api', 'pods')}/${podName(next.launchId)}-${part}`
      await real.api.request({ method: 'DELETE', path, body: { gracePeriodSeconds: 1 } }, signal())
      const { reason } = await listed(launcher, next.launchId, isGone)
      expect(reason).toMatch(/^Its pod .*was deleted\.$/)
      await untilNothingIsLeft(next.launchId)
    }
  })

  test('the next server takes it over; a set that somebody deletes leaves nothing', async () => {
    const server = newServer()
    const before = await openAt(real.cluster, server)
    const { launchId, launch } = await started(before, 2)
    await before.leave()
    const next = await openAt(real.cluster, server)
    expect((await listed(next, launchId, isReady)).endpoint).toEqual(launch.endpoint)
    await real.api.request({ method: 'DELETE', path: `${sets()}/${podName(launchId)}` }, signal())
    expect(await listed(next, launchId, isGone)).toMatchObject({ reason: expect.stringContaining('deleted') as string })
    await untilNothingIsLeft(launchId)
  })

  test('the change of its owner starts no pod again, and without a server all of it goes', async () => {
    const launcher = await openAt(real.cluster)
    const { launchId } = await started(launcher, 2)
    const uids = async () => (await podsOf(launchId)).map(({ metadata }) => metadata.uid)
    const before = await uids()
    const job = `${pathOf('apis/batch', 'jobs')}/${podName(launchId)}`
    const uidOf = async () => (await itemsOf(launchId, pathOf('apis/batch', 'jobs')))[0]?.metadata.uid
    const first = await uidOf()
    await real.api.request({ method: 'PATCH', path: job, body: { spec: { activeDeadlineSeconds: 1 } } }, signal())
    await until(async () => ![undefined, first].includes(await uidOf()))
    await until(async () => (await itemsOf(launchId, sets()))[0]?.metadata.ownerReferences?.[0]?.kind === 'Job')
    expect(await isReady(await listed(launcher, launchId, isReady))).toBe(true)
    expect(await uids()).toEqual(before)
    await launcher.leave()
    await untilNothingIsLeft(launchId)
  })

  test('pods that a quota refuses are told as what the launch waits for', async () => {
    const launcher = await openAt(real.cluster)
    const quotas = pathOf('api', 'resourcequotas')
    const hard = { 'requests.nvidia.com/gpu': '3' }
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'gpus' }, spec: { hard } }
    await real.api.request({ method: 'POST', path: quotas, body: quota }, signal())
    const remove = () => real.api.request({ method: 'DELETE', path: `${quotas}/gpus` }, signal()).catch(() => {})
    onTestFinished(() => void remove())
    // No controller counts for it here.
    const setUsed = (used: string) =>
      real.api.request(
        {
          method: 'PATCH',
          path: `${quotas}/gpus/status`,
          body: { status: { hard, used: { 'requests.nvidia.com/gpu': used } } },
        },
        signal(),
      )
    await setUsed('0')
    const launchId = newId()
    await launcher.start(spanningOptions(launchId, 2), signal())
    const { reason } = await listed(launcher, launchId, one => one.reason?.includes('exceeded quota') ?? false)
    expect(reason).toMatch(
      /^It waits for Kubernetes: Create Pod infer-\S+-0-1 in StatefulSet infer-\S+-0 failed error: .*\.$/,
    )
    await remove()
    await listed(launcher, launchId, isReady)
    await launcher.stop(launchId, 1_000, signal())
    await listed(launcher, launchId, isGone)
    await untilNothingIsLeft(launchId)
  })

  test('without its controller engines run on, and new ones wait until it is back', async () => {
    const launcher = await openAt(real.cluster)
    const { launchId } = await started(launcher, 2)
    const before = (await podsOf(launchId)).map(({ metadata }) => metadata.uid)
    await real.killSetController()
    const next = newId()
    await expect(launcher.start(spanningOptions(next, 2), AbortSignal.timeout(20_000))).rejects.toThrow(
      /^It is not known whether Kubernetes has accepted the pod of 'fake': .*webhook/,
    )
    expect(await isReady(await listed(launcher, launchId, isReady))).toBe(true)
    await real.startSetController()
    // The Job of the first attempt may have reached its deadline.
    const start = () => launcher.start(spanningOptions(next, 2), signal())
    await until(() =>
      start().then(
        () => true,
        () => false,
      ),
    )
    await listed(launcher, next, isReady)
    expect((await podsOf(launchId)).map(({ metadata }) => metadata.uid)).toEqual(before)
    for (const one of [launchId, next]) {
      await launcher.stop(one, 1_000, signal())
      await listed(launcher, one, isGone)
      await untilNothingIsLeft(one)
    }
  })
})
