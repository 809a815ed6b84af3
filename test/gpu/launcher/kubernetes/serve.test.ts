import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openKubernetesLauncher } from '../../../../gpu/launcher/kubernetes/kubernetes.ts'
import type { LaunchRecord } from '../../../../gpu/launcher/launch-records.ts'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { fakeModel } from '../../../_app.ts'
import { root } from '../../../_fixtures.ts'
import { serve } from '../../../cli/_serve.ts'
import { fleetOf } from '../../_fleet.ts'
import { editedImage, workerOf } from '../_generation.ts'
import { temporary, until } from '../_launch.ts'
import { type FakeCluster, startFakeCluster } from './_fake-cluster.ts'
import { temporaryFolder } from './_folder.ts'
import { kubernetesSettings } from './_server.ts'

const absent = findProgram('python3', process.env.PATH ?? '') ? undefined : 'python3 is not installed'

describe.skipIf(absent !== undefined)(`a server with a pool of Kubernetes${absent ? ` (${absent})` : ''}`, () => {
  let fake: FakeCluster
  beforeAll(async () => {
    fake = await startFakeCluster(temporaryFolder())
  })
  afterAll(() => fake.close())

  const podsNow = () => [...fake.server.objects.keys()].filter(path => path.includes('/pods/'))

  test('answers from a pod, takes it over after kill -9, and deletes it when it stops', {
    timeout: 90_000,
  }, async () => {
    const dataDir = temporary()
    // The node of the test has the files of this machine.
    const volumes = [{ host_path: root, mount_path: root }]
    const pools = { k8s: { kind: 'kubernetes', card_memory: '80GiB', orphan_grace: '30s', volumes, ...fake.cluster } }
    const model = fakeModel('big', [], {
      devices: 1,
      memory: '60GiB',
      pools: [{ pool: 'k8s', image: 'engine:1' }],
    })
    const limits = { min_free_disk: '1MiB', ballast: '1MiB' }
    const configuration = { listen: '127.0.0.1:0', limits, pools, models: [model] }
    writeFileSync(join(dataDir, 'infer.yaml'), JSON.stringify(configuration))
    const chat = async ({ url }: { url: string }) => {
      const secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ model: 'big', messages: [{ role: 'user', content: 'Hello' }] })
      const answer = await fetch(`${url}/std/v1/chat/completions`, { method: 'POST', headers, body })
      return { status: answer.status, text: await answer.text() }
    }
    const first = await serve(dataDir)
    expect(await chat(first)).toMatchObject({ status: 200, text: expect.stringContaining('Hello') as string })
    const pods = podsNow()
    expect(pods).toHaveLength(1)
    // An engine whose note is not on the disk yet was not ready, as far as the next server knows.
    const records = join(dataDir, 'kubernetes/k8s/launches')
    const isNoted = (name: string) =>
      (JSON.parse(readFileSync(join(records, name), 'utf8')) as LaunchRecord).note !== null
    await until(() => readdirSync(records).some(name => name.endsWith('.json') && isNoted(name)))
    first.child.kill('SIGKILL')
    await once(first.child, 'exit')

    const next = await serve(dataDir)
    expect(await chat(next)).toMatchObject({ status: 200 })
    expect(next.stderr()).toContain("Took over the engine of 'big'")
    expect(podsNow()).toEqual(pods)
    next.child.kill('SIGTERM')
    expect(await next.ends()).toBe(0)
    await until(() => podsNow().length === 0)
    expect([...fake.role.refused]).toEqual([])
  })

  test('the Python worker edits an image in a pod, which shares no folder with the server', async () => {
    const { bin, image, model } = await workerOf('k8s')
    // The node of the test has the files of this machine.
    const volumes = [{ host_path: bin, mount_path: bin }]
    const settings = kubernetesSettings(fake.cluster, { volumes, images: { python: 'worker:1' } })
    const path = process.env.PATH
    process.env.PATH = `${bin}:${path}`
    onTestFinished(() => void (process.env.PATH = path))
    const { fleet } = await fleetOf([model], {
      pools: () => ({ k8s: settings }),
      openPoolLauncher: options => openKubernetesLauncher({ ...options, settings }),
    })
    expect(await editedImage(fleet, model, image)).toEqual({ width: 32, height: 16 })
    expect(fleet.snapshot().residents).toMatchObject([{ pool: 'k8s', state: 'ready' }])
  })
})
