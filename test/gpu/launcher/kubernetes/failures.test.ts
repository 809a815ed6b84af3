import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { podName } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'
import { containers, labels } from '../../../../gpu/launcher/kubernetes/pod-state.ts'
import type { Launcher } from '../../../../gpu/launcher/launcher.ts'
import { fetchHealth } from '../../../../gpu/requests/health.ts'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { full } from '../../../_full.ts'
import { survivors, temporary, until } from '../_launch.ts'
import { type FakeCluster, startFakeCluster } from './_fake-cluster.ts'
import { temporaryFolder } from './_folder.ts'
import { isGone, isReady, listed, newServer, openAt, podOptions } from './_server.ts'

const absent = findProgram('python3', process.env.PATH ?? '') ? undefined : 'python3 is not installed'
const signal = () => AbortSignal.timeout(20_000)
const namespace = 'inference'
let count = 0
const newId = () => `wkr_${process.pid}k${++count}-1`

describe.skipIf(absent !== undefined)(`pods, when something fails${absent ? ` (${absent})` : ''}`, () => {
  let fake: FakeCluster
  let { server, cluster, api } = {} as FakeCluster
  beforeAll(async () => {
    fake = await startFakeCluster(temporaryFolder())
    ;({ server, cluster, api } = fake)
  })
  afterAll(() => fake.close())

  const podPath = (launchId: string) => `${namespace}/pods/${podName(launchId)}`

  async function started(launcher: Launcher, flags: readonly string[] = [], more = {}) {
    const launchId = newId()
    await launcher.start(podOptions(launchId, flags, more), signal())
    return { launchId, launch: await listed(launcher, launchId, isReady) }
  }

  test('a watch that breaks goes on, and one that is too old lists all again: nothing is ended', async () => {
    const launcher = await openAt(cluster)
    const { launchId, launch } = await started(launcher)
    server.breakConnections()
    expect(await listed(launcher, launchId, isReady)).toMatchObject({ state: 'running', endpoint: launch.endpoint })
    server.state.forgotten = server.version() + 1
    onTestFinished(() => void (server.state.forgotten = 0))
    server.breakConnections()
    expect(await listed(launcher, launchId, isReady)).toMatchObject({ state: 'running', endpoint: launch.endpoint })
    expect(await survivors(launchId)).not.toEqual([])
  })

  test('a pod that somebody else deletes is gone, with everything of it, and so is its secret', async () => {
    const launcher = await openAt(cluster)
    const { launchId } = await started(launcher, ['--grandchild'])
    const path = `/api/v1/namespaces/${namespace}/pods/${podName(launchId)}`
    await api.request({ method: 'DELETE', path, body: { gracePeriodSeconds: 1 } }, signal())
    expect(await listed(launcher, launchId, isGone)).toMatchObject({ endpoint: null })
    // The kubelet of the test removes a pod and then its processes.
    await until(async () => (await survivors(launchId)).length === 0)
    await until(() => ![...server.objects.keys()].some(key => key.includes(podName(launchId))))
  })

  test('a pod that could not be deleted yet when its engine ended is deleted when the server stops', async () => {
    const launcher = await openAt(cluster)
    server.state.forbidden = /^DELETE/
    onTestFinished(() => void (server.state.forbidden = null))
    const launchId = newId()
    await launcher.start(podOptions(launchId, ['--exit', '3']), signal())
    await listed(launcher, launchId, isGone)
    expect(server.objects.has(podPath(launchId))).toBe(true)
    server.state.forbidden = null
    await launcher.close()
    await until(() => ![...server.objects.keys()].some(key => key.includes(podName(launchId))))
  })

  test.runIf(full)('a pod that is evicted says why', async () => {
    const launcher = await openAt(cluster)
    const { launchId } = await started(launcher)
    const status = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' }
    server.change(podPath(launchId), { status })
    expect(await listed(launcher, launchId, isGone)).toMatchObject({
      reason: 'Kubernetes has evicted its pod: The node was low on resource: memory.',
    })
  })

  test('a pod with its name and another uid is not its pod', async () => {
    const launcher = await openAt(cluster)
    const { launchId } = await started(launcher)
    const serverLabel = (server.objects.get(podPath(launchId)) as { metadata: { labels: Record<string, string> } })
      .metadata.labels[labels.server]!
    server.removePod(namespace, podName(launchId))
    expect(await listed(launcher, launchId, isGone)).toMatchObject({ endpoint: null })
    const spec = {
      nodeSelector: { 'test/unschedulable': 'yes' },
      containers: [{ name: containers.engine, image: 'x', command: [] }],
    }
    const metadata = {
      name: podName(launchId),
      namespace,
      labels: { [labels.server]: serverLabel, [labels.launch]: launchId },
    }
    server.put(`${namespace}/pods`, 'Pod', { metadata, spec, status: { phase: 'Pending' } })
    await until(() => !server.objects.has(podPath(launchId)))
    expect(await launcher.list(signal())).toMatchObject([{ launchId, state: 'gone' }])
  })

  test('a quota refuses with the words of Kubernetes, and nothing is left', async () => {
    server.state.quota = 'pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1'
    onTestFinished(() => void (server.state.quota = null))
    const launcher = await openAt(cluster)
    const launchId = newId()
    await expect(launcher.start(podOptions(launchId, []), signal())).rejects.toMatchObject({
      code: 'worker_error',
      message:
        'Kubernetes has refused the pod of \'fake\': pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1.',
    })
    expect(await launcher.list(signal())).toEqual([])
    expect([...server.objects.keys()].filter(key => key.includes(podName(launchId)))).toEqual([])
  })

  test('a pod without an image, or without a node, says why it waits, and is ended before it runs', async () => {
    const launcher = await openAt(cluster)
    const launchId = newId()
    await launcher.start(podOptions(launchId, [], {}, 'missing:1'), signal())
    const waiting = await listed(launcher, launchId, ({ reason }) => reason?.includes('ErrImagePull') ?? false)
    expect(waiting).toMatchObject({ state: 'pending', endpoint: null, node: 'node1' })
    expect(waiting.reason).toMatch(/^The image 'missing:1' of its pod cannot be pulled: failed to pull/)
    await launcher.stop(launchId, 60_000, signal())
    await listed(launcher, launchId, isGone)
    const other = await openAt(cluster, newServer(), { node_selector: { 'test/unschedulable': 'yes' } })
    const second = newId()
    await other.start(podOptions(second, []), signal())
    const { reason } = await listed(other, second, one => one.reason?.includes('Unschedulable') ?? false)
    expect(reason).toBe(
      'It waits for Kubernetes: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu (Unschedulable).',
    )
    await other.stop(second, 60_000, signal())
    await listed(other, second, isGone)
  })

  test.runIf(full)('an engine stays until a node that is gone is given up', async () => {
    const lost = await startFakeCluster(temporary())
    onTestFinished(() => lost.close())
    const launcher = await openAt(lost.cluster, newServer(), {}, 500)
    const { launchId } = await started(launcher)
    lost.kubelet.die()
    await launcher.stop(launchId, 0, signal())
    expect((await launcher.list(signal()))[0]).toMatchObject({ state: 'ending' })
    expect(await listed(launcher, launchId, isGone)).toMatchObject({ reason: "Its node 'node1' does not answer." })
  })

  test('two servers in one namespace see and end only what is their own', async () => {
    const [one, other] = [await openAt(cluster), await openAt(cluster)]
    const [first, second] = await Promise.all([started(one), started(other)])
    expect((await one.list(signal())).map(({ launchId }) => launchId)).toEqual([first.launchId])
    await one.stop(second.launchId, 0, signal())
    await one.close()
    await until(async () => (await survivors(first.launchId)).length === 0)
    expect(await isReady(second.launch)).toBe(true)
  })

  test.runIf(full)('a server whose records are lost deletes the pods that it cannot call any more', async () => {
    const own = newServer()
    const before = await openAt(cluster, own)
    const { launchId } = await started(before)
    await before.leave()
    rmSync(join(own.dataDir, 'kubernetes'), { recursive: true })
    const next = await openAt(cluster, own)
    expect(await next.list(signal())).toEqual([])
    await until(async () => (await survivors(launchId)).length === 0)
  })

  test('others read no key in the pod, and cannot call the engine', async () => {
    const launcher = await openAt(cluster)
    const env = { SOME_TOKEN: 'a-secret-of-it' }
    const { launchId, launch } = await started(launcher, [], { env })
    const { origin, tls } = launch.endpoint!
    const shown = JSON.stringify(server.objects.get(podPath(launchId)))
    for (const secret of [env.SOME_TOKEN, tls!.key.split('\n')[1]!]) expect(shown).not.toContain(secret)
    expect((await fetchHealth({ origin }, '/health', [], 2_000)).health).toBe('loading')
    const another = (await started(launcher)).launch.endpoint!.tls
    expect((await fetchHealth({ origin, tls: another }, '/health', [], 2_000)).health).toBe('loading')
    await until(() => isReady(launch))
  })

  test('without the right to list nodes a pool has the GPUs of its limit', async () => {
    server.state.forbidden = /nodes$/
    onTestFinished(() => void (server.state.forbidden = null))
    const limited = await openAt(cluster, newServer(), { max_cards: 3 })
    expect((await limited.capacity(signal())).devices).toHaveLength(3)
    await expect((await openAt(cluster)).capacity(signal())).rejects.toThrow(
      "Kubernetes does not tell the nodes of the pool 'k8s': the server may not list them. Let it, or set 'max_cards' of the pool.",
    )
  })
})
