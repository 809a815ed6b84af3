import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { InspectionFinding } from '../../../../core/inspection.ts'
import { checkPool } from '../../../../gpu/pool-checks/check-pool.ts'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { fake as fakeModel } from '../../_fleet.ts'
import { keptLog, temporary, until } from '../_launch.ts'
import { tokens } from './_api-server.ts'
import { type FakeCluster, startFakeCluster } from './_fake-cluster.ts'
import { temporaryFolder } from './_folder.ts'
import { writeKubeconfig } from './_kubeconfig.ts'
import { doctorOf, kubernetesSettings } from './_server.ts'

const absent = findProgram('python3', process.env.PATH ?? '') ? undefined : 'python3 is not installed'
const model = fakeModel('big', [], { pools: [{ pool: 'k8s', image: 'engine:1' }], devices: 2 })

describe.skipIf(absent !== undefined)(`doctor, of a pool of Kubernetes${absent ? ` (${absent})` : ''}`, () => {
  let fake: FakeCluster
  beforeAll(async () => {
    fake = await startFakeCluster(temporaryFolder())
  })
  afterAll(() => fake.close())

  test('finds what a pool needs, by a pod of which nothing is left', async () => {
    const found = await doctorOf(fake.cluster, [model])
    expect([...found.values()].filter(({ state }) => state !== 'fine')).toEqual([])
    expect([...found.values()].map(({ name, detail }) => [name, detail])).toEqual([
      ['cluster', `${fake.server.url} answers, Kubernetes v1.99.0`],
      ['rights in the namespace', "the account may do in 'inference' what pods need"],
      ['rights in the cluster', 'the account may list nodes and pods'],
      ['GPUs', "4 of 'nvidia.com/gpu' on 1 node, 4 free"],
      ['images', 'engine:1'],
      ['pod', 'Kubernetes accepts a pod with 2 GPUs'],
      ['trial pod', expect.stringMatching(/^a pod on node1 has answered over TLS, with Python 3/)],
      ['files there', 'pods have the models that infer.yaml names by path'],
    ])
    await until(() => ![...fake.server.objects.keys()].some(path => /pods|secrets/.test(path)))
    expect([...fake.role.refused]).toEqual([])
  })

  test('names each right that is missing, and tries no pod then', async () => {
    for (const right of ['patch secrets', 'get pods/log', 'list nodes in the cluster']) fake.role.withdrawn.add(right)
    fake.server.state.quota = 'pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2'
    onTestFinished(() => {
      fake.role.withdrawn.clear()
      fake.server.state.quota = null
    })
    const found = await doctorOf(fake.cluster, [model])
    expect(found.get('rights in the namespace')).toMatchObject({
      state: 'broken',
      detail: "the account may not get pods/log, patch secrets in 'inference'",
      advice: expect.stringContaining('--namespace inference | kubectl apply') as string,
    })
    expect(found.get('rights in the cluster')).toMatchObject({
      state: 'broken',
      detail: "the account may not list nodes in the whole cluster, and the pool has no 'max_cards'",
    })
    expect(found.get('pod')).toMatchObject({
      state: 'broken',
      detail: expect.stringMatching(/refuses a pod with 2 GPUs: pods "x" is forbidden: exceeded quota/) as string,
      advice: expect.stringMatching(/^Ask for a larger quota/) as string,
    })
    expect(found.has('trial pod')).toBe(false)
  })

  test('says that the sets of models that span nodes stay without the rights for Jobs', async () => {
    const wide = { ...model, nodes: 2 }
    const deadline = async () => (await doctorOf(fake.cluster, [wide])).get('deadline')
    // So no pod is tried.
    fake.role.withdrawn.add('create pods')
    onTestFinished(() => fake.role.withdrawn.clear())
    const detail = 'engines that span nodes are deleted 3s after this server is gone'
    expect(await deadline()).toMatchObject({ state: 'fine', detail })
    for (const right of ['create jobs', 'patch leaderworkersets']) fake.role.withdrawn.add(right)
    expect(await deadline()).toMatchObject({
      state: 'warning',
      detail:
        "the account may not create jobs, patch leaderworkersets in 'inference', so engines that span nodes keep their GPUs if this server is removed",
      advice: expect.stringContaining('--namespace inference | kubectl apply') as string,
    })
  })

  test('says of the address, the certificate and the token which of them is wrong', async () => {
    const { url, certificate: authority } = fake.server
    const right = { who: 'x', url, token: tokens.infer, authority, serverName: 'infer' }
    const only = async (wrong: object) => {
      const kubeconfig = writeKubeconfig(temporary(), { ...right, ...wrong })
      const found = [...(await doctorOf({ ...fake.cluster, kubeconfig }, [])).values()]
      expect(found).toHaveLength(1)
      return found[0]
    }
    expect(await only({ url: 'https://127.0.0.1:1' })).toMatchObject({
      name: 'cluster',
      state: 'broken',
      detail: 'https://127.0.0.1:1 does not answer: connect ECONNREFUSED 127.0.0.1:1',
    })
    expect(await only({ serverName: 'another' })).toMatchObject({
      name: 'cluster',
      detail: expect.stringMatching(/^the certificate of .* is not trusted: /) as string,
    })
    expect(await only({ token: 'old' })).toMatchObject({
      name: 'credentials',
      detail: `${url} does not accept them: Unauthorized`,
    })
    const found: InspectionFinding[] = []
    const settings = kubernetesSettings({ ...fake.cluster, kubeconfig: '/no/such/file' })
    const options = { pool: 'k8s', settings, models: [], dataDir: temporary(), environment: {}, log: keptLog() }
    for await (const finding of checkPool(options)) found.push(finding)
    expect(found).toMatchObject([
      { name: 'cluster', state: 'broken', detail: 'The kubeconfig /no/such/file cannot be read (ENOENT)' },
    ])
  })
})
