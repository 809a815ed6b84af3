import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { optionalText } from '../../../../core/optional-file.ts'
import { podName } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'
import type { Launch, Launcher } from '../../../../gpu/launcher/launcher.ts'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { full } from '../../../_full.ts'
import { survivors, until } from '../_launch.ts'
import { type FakeCluster, startFakeCluster } from './_fake-cluster.ts'
import { temporaryFolder } from './_folder.ts'
import { isGone, isReady, listed, newServer, openAt, spanningOptions } from './_server.ts'

const absent = findProgram('python3', process.env.PATH ?? '') ? undefined : 'python3 is not installed'
const signal = () => AbortSignal.timeout(20_000)
let count = 0

describe.skipIf(absent !== undefined)(`engines that span nodes of Kubernetes${absent ? ` (${absent})` : ''}`, () => {
  let fake: FakeCluster
  beforeAll(async () => {
    fake = await startFakeCluster(temporaryFolder())
  })
  afterAll(() => fake.close())

  const objectsOf = (launchId: string) =>
    [...fake.server.objects.keys()].filter(path => path.includes(podName(launchId)))

  /** Starts an engine on so many nodes, and waits until it is so. */
  async function started(
    launcher: Launcher,
    nodes: number,
    flags: readonly string[] = [],
    isUp: (launch: Launch) => boolean | Promise<boolean> = isReady,
  ) {
    const launchId = `wkr_${process.pid}s${++count}-1`
    await launcher.start(spanningOptions(launchId, nodes, flags), signal())
    return { launchId, launch: await listed(launcher, launchId, isUp) }
  }

  test('all parts meet, the first one answers, and a stop leaves nothing', async () => {
    const launcher = await openAt(fake.cluster)
    const { launchId, launch } = await started(launcher, 3)
    expect(launch).toMatchObject({ state: 'running', node: 'node1, node1, node1' })
    expect([...partsOf(await survivors(launchId)).keys()].toSorted((a, b) => a - b)).toEqual([0, 1, 2])
    // Pods, set, Job, secret, and the service by whose name they find the first.
    expect(objectsOf(launchId)).toHaveLength(7)
    await launcher.stop(launchId, 5_000, signal())
    expect(await listed(launcher, launchId, isGone)).toMatchObject({ reason: null })
    expect(await survivors(launchId)).toEqual([])
    let output = ''
    for await (const { bytes } of launcher.logs(launchId, 0, signal())) output += Buffer.from(bytes).toString()
    expect(output).toMatch(/^part 0 of 3 .* as 127\.0\.0\.1$/m)
    for (const rank of [1, 2]) expect(output).toMatch(new RegExp(`^rank ${rank}: part ${rank} of 3 .*headless$`, 'm'))
    await until(() => objectsOf(launchId).length === 0)
    expect([...fake.role.refused]).toEqual([])
  })

  test('the end of any part ends all, once, and says where', async () => {
    const launcher = await openAt(fake.cluster)
    const flags = ['--exit-of', '1', '--ignore-term', '--grandchild']
    const { launchId, launch } = await started(launcher, 2, flags, isGone)
    expect(launch).toMatchObject({ status: '7', reason: "Its part on the node 'node1' has ended with 7." })
    await until(async () => (await survivors(launchId)).length === 0 && objectsOf(launchId).length === 0)
    const next = await started(launcher, 2)
    process.kill(partsOf(await survivors(next.launchId)).get(0)!, 'SIGSEGV')
    expect(await listed(launcher, next.launchId, isGone)).toMatchObject({
      status: 'SIGSEGV',
      reason: 'It was ended by SIGSEGV.',
    })
    await until(async () => (await survivors(next.launchId)).length === 0)
  })

  test('a stop ends all parts at once, though pods after the first belong to the first', async () => {
    const launcher = await openAt(fake.cluster)
    const { launchId } = await started(launcher, 3, ['--ignore-term'])
    const ranks = async () => [...partsOf(await survivors(launchId)).keys()]
    const stopping = launcher.stop(launchId, 5_000, signal())
    await until(async () => (await ranks()).length < 3)
    await until(async () => (await ranks()).length === 1)
    expect(await ranks()).toEqual([0])
    await stopping
    await listed(launcher, launchId, isGone)
    await until(() => objectsOf(launchId).length === 0)
  })

  test('pods that Kubernetes refuses are told as what the launch waits for', async () => {
    const launcher = await openAt(fake.cluster)
    fake.server.state.quota = 'exceeded quota: gpus'
    onTestFinished(() => void (fake.server.state.quota = null))
    const isTold = ({ reason }: Launch) => reason?.includes('exceeded quota') ?? false
    const { launchId, launch } = await started(launcher, 2, [], isTold)
    const name = podName(launchId)
    const told = (pod: string, set: string) =>
      `It waits for Kubernetes: Create Pod ${pod} in StatefulSet ${set} failed error: exceeded quota: gpus.`
    expect(launch).toMatchObject({ state: 'pending', reason: told(`${name}-0`, name) })
    await launcher.stop(launchId, 1_000, signal())
    await listed(launcher, launchId, isGone)
    await until(() => objectsOf(launchId).length === 0)
  })

  test('the next server takes it over, and a set that somebody deletes leaves nothing', async () => {
    const server = newServer()
    const before = await openAt(fake.cluster, server)
    const { launchId, launch } = await started(before, 2)
    await before.leave()
    const next = await openAt(fake.cluster, server)
    expect((await listed(next, launchId, isReady)).endpoint).toEqual(launch.endpoint)
    const path = `/apis/leaderworkerset.x-k8s.io/v1/namespaces/${fake.cluster.namespace}/leaderworkersets/${podName(launchId)}`
    await fake.api.request({ method: 'DELETE', path }, signal())
    expect(await listed(next, launchId, isGone)).toMatchObject({ reason: expect.stringContaining('deleted') as string })
    await until(async () => (await survivors(launchId)).length === 0)
  })

  test.runIf(full)('a pod that is deleted ends all, also where its controller makes it again', async () => {
    const launcher = await openAt(fake.cluster)
    const { launchId } = await started(launcher, 2)
    const path = `/api/v1/namespaces/${fake.cluster.namespace}/pods/${podName(launchId)}-0-1`
    await fake.api.request({ method: 'DELETE', path, body: { gracePeriodSeconds: 1 } }, signal())
    const { reason } = await listed(launcher, launchId, isGone)
    expect(reason).toBe("Its pod on the node 'node1' was deleted.")
    await until(async () => (await survivors(launchId)).length === 0 && objectsOf(launchId).length === 0)
  })

  const jobOf = (launchId: string) =>
    fake.server.objects.get(`${fake.cluster.namespace}/jobs/${podName(launchId)}`) as
      | { metadata: { uid: string }; spec: { activeDeadlineSeconds: number } }
      | undefined
  const setOf = (launchId: string) =>
    fake.server.objects.get(`${fake.cluster.namespace}/leaderworkersets/${podName(launchId)}`)

  test.runIf(full)('a set lives for as long as a server is there, and for its grace after that', async () => {
    const launcher = await openAt(fake.cluster)
    const { launchId } = await started(launcher, 2)
    expect(jobOf(launchId)).toMatchObject({ spec: { parallelism: 0, ttlSecondsAfterFinished: 5 } })
    // Three seconds after a start that is three seconds ago.
    await until(() => (jobOf(launchId)?.spec.activeDeadlineSeconds ?? 0) > 6)
    expect(setOf(launchId)).toMatchObject({ metadata: { ownerReferences: [{ uid: jobOf(launchId)!.metadata.uid }] } })
    await launcher.leave()
    await until(async () => partsOf(await survivors(launchId)).size === 0 && objectsOf(launchId).length === 0)
    expect([...fake.role.refused]).toEqual([])
  })

  test('a role without Jobs lets sets run without a deadline, says so, and with it they get one', async () => {
    for (const verb of ['create', 'get', 'patch', 'delete']) fake.role.withdrawn.add(`${verb} jobs`)
    onTestFinished(() => {
      fake.role.withdrawn.clear()
      fake.role.refused.clear()
    })
    const launcher = await openAt(fake.cluster)
    const { launchId } = await started(launcher, 2)
    expect(jobOf(launchId)).toBeUndefined()
    const said = expect.stringMatching(
      /^warn Engines that span nodes run without a deadline.* --namespace inference \| kubectl apply .*cannot create the resource/,
    ) as string
    expect(launcher.log.lines).toEqual([said])
    fake.role.withdrawn.clear()
    await until(() => setOf(launchId)?.metadata.ownerReferences !== undefined)
    expect(setOf(launchId)).toMatchObject({ metadata: { ownerReferences: [{ uid: jobOf(launchId)!.metadata.uid }] } })
    await launcher.stop(launchId, 1_000, signal())
    await until(() => objectsOf(launchId).length === 0)
  })

  test('a set whose deadline could not be moved in time is taken back, and gets another Job', async () => {
    const launcher = await openAt(fake.cluster)
    const { launchId } = await started(launcher, 2)
    const { uid } = jobOf(launchId)!.metadata
    const conditions = [{ type: 'Failed', status: 'True' }]
    fake.server.change(`${fake.cluster.namespace}/jobs/${podName(launchId)}`, { status: { conditions } })
    await until(() => ![undefined, uid].includes(setOf(launchId)?.metadata.ownerReferences?.[0]?.uid))
    expect(setOf(launchId)).toMatchObject({ metadata: { ownerReferences: [{ uid: jobOf(launchId)!.metadata.uid }] } })
    expect(await isReady(await listed(launcher, launchId, isReady))).toBe(true)
    await launcher.stop(launchId, 1_000, signal())
    await until(() => objectsOf(launchId).length === 0)
  })

  test('a Job that somebody deletes takes its set along, which ends the launch', async () => {
    const launcher = await openAt(fake.cluster)
    const { launchId } = await started(launcher, 2)
    const path = `/apis/batch/v1/namespaces/${fake.cluster.namespace}/jobs/${podName(launchId)}`
    await fake.api.request({ method: 'DELETE', path }, signal())
    expect(await listed(launcher, launchId, isGone)).toMatchObject({
      reason: expect.stringContaining('deleted') as string,
    })
    await until(async () => (await survivors(launchId)).length === 0 && objectsOf(launchId).length === 0)
  })

  test('a cluster without LeaderWorkerSet refuses it with a sentence, and nothing is left', async () => {
    fake.server.state.hasSets = false
    onTestFinished(() => void (fake.server.state.hasSets = true))
    const launcher = await openAt(fake.cluster)
    await expect(started(launcher, 2)).rejects.toMatchObject({
      code: 'worker_error',
      message:
        "'fake' spans 2 nodes, and the cluster of the pool 'k8s' has no LeaderWorkerSet. Install its controller (https://lws.sigs.k8s.io), or remove 'nodes' of the model.",
    })
    expect(await launcher.list(signal())).toEqual([])
    expect(objectsOf(`wkr_${process.pid}s${count}-1`)).toEqual([])
  })
})

/** The parts of an engine: process ids by rank. */
function partsOf(pids: readonly number[]): Map<number, number> {
  return new Map(
    pids.flatMap(pid => {
      const words = (optionalText(`/proc/${pid}/cmdline`) ?? '').split('\0')
      const at = words.indexOf('--node-rank')
      return at < 0 || words[0] === '/bin/sh' ? [] : [[Number(words[at + 1]), pid] as const]
    }),
  )
}
