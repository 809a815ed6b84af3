import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { podName } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { until } from '../_launch.ts'
import { type FakeCluster, startFakeCluster } from './_fake-cluster.ts'
import { temporaryFolder } from './_folder.ts'
import { isGone, isReady, listed, newServer, openAt, podOptions } from './_server.ts'

const absent = findProgram('python3', process.env.PATH ?? '') ? undefined : 'python3 is not installed'
const signal = () => AbortSignal.timeout(20_000)

describe.skipIf(absent !== undefined)(`the role of the manifest${absent ? ` (${absent})` : ''}`, () => {
  let fake: FakeCluster
  beforeAll(async () => {
    fake = await startFakeCluster(temporaryFolder())
  })
  afterAll(() => fake.close())

  test('allows all that a pool does, and nothing else', async () => {
    const { server, api, cluster, role } = fake
    const pods = `/api/v1/namespaces/${cluster.namespace}/pods`
    const launcher = await openAt(cluster)
    expect((await launcher.capacity(signal())).devices).toHaveLength(4)
    const launchId = `wkr_${process.pid}role-1`
    await launcher.start(podOptions(launchId, []), signal())
    await listed(launcher, launchId, isReady)
    const output = launcher.logs(launchId, 0, signal())[Symbol.asyncIterator]()
    expect((await output.next()).value?.bytes.length).toBeGreaterThan(0)

    // A name that is taken.
    const taken = `wkr_${process.pid}role-2`
    await api.request({ method: 'POST', path: pods, body: { metadata: { name: podName(taken) } } }, signal())
    await expect(launcher.start(podOptions(taken, []), signal())).rejects.toThrow(
      `Kubernetes has refused the pod of 'fake': the pod ${podName(taken)} belongs to somebody else.`,
    )

    // An engine that spans nodes, and its name that is taken.
    const wide = `wkr_${process.pid}role-4`
    const spanning = (id: string) => {
      const options = podOptions(id, [])
      return launcher.start({ ...options, needs: { ...options.needs!, nodes: 2 } }, signal())
    }
    // At first without a Job, which it gets later.
    role.withdrawn.add('create jobs')
    await spanning(wide)
    await spanning(wide)
    role.withdrawn.clear()
    await until(() => !role.unused.has('patch leaderworkersets'))
    role.refused.delete('create jobs')
    const sets = `/apis/leaderworkerset.x-k8s.io/v1/namespaces/${cluster.namespace}/leaderworkersets`
    const takenSet = `wkr_${process.pid}role-5`
    await api.request({ method: 'POST', path: sets, body: { metadata: { name: podName(takenSet) } } }, signal())
    await expect(spanning(takenSet)).rejects.toThrow(/the LeaderWorkerSet infer-wkr-\S+ belongs to somebody else/)
    const jobs = `/apis/batch/v1/namespaces/${cluster.namespace}/jobs`
    const takenJob = `wkr_${process.pid}role-6`
    const job = { metadata: { name: podName(takenJob) }, spec: { activeDeadlineSeconds: 600, image: 'a' } }
    await api.request({ method: 'POST', path: jobs, body: job }, signal())
    await expect(spanning(takenJob)).rejects.toThrow(/the Job infer-wkr-\S+ belongs to somebody else/)
    await api.request({ method: 'DELETE', path: `${jobs}/${podName(takenJob)}` }, signal())

    // A pod with a node on which it does not start.
    const slow = await openAt(cluster, newServer(), { node_selector: { 'test/unschedulable': 'yes' } })
    const stuck = `wkr_${process.pid}role-3`
    await slow.start(podOptions(stuck, []), signal())
    const { reason } = await listed(slow, stuck, one => one.reason?.includes('Unschedulable') ?? false)
    expect(reason).toContain('1 Insufficient nvidia.com/gpu')
    const path = `${pods}/${podName(stuck)}`
    const { metadata } = (await api.request({ path }, signal())) as { metadata: { uid: string } }
    const message = 'MountVolume.SetUp failed for volume "volume-0".'
    server.put(`${cluster.namespace}/events`, 'Event', {
      metadata: { name: 'one' },
      type: 'Warning',
      involvedObject: { uid: metadata.uid },
      message,
    })
    await api.request({ method: 'POST', path: `${path}/binding`, body: { target: { name: 'node1' } } }, signal())
    await listed(slow, stuck, one => one.reason === `Its pod is being prepared on the node 'node1': ${message}`)

    for (const [of, id] of [
      [launcher, launchId],
      [launcher, wide],
      [slow, stuck],
    ] as const) {
      await of.stop(id, 0, signal())
      await listed(of, id, isGone)
    }
    await until(() => role.unused.size === 0)
    expect([...role.refused]).toEqual([])
  })
})
