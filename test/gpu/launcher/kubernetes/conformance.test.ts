import { afterAll, beforeAll, describe } from 'vitest'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { apiToken, type FakeApiServer, startApiServer } from './_api-server.ts'
import { describePods } from './_describe.ts'
import { temporaryFolder } from './_folder.ts'
import { type Kubelet, startKubelet } from './_kubelet.ts'
import { apiOf, type TestCluster, writeKubeconfig } from './_server.ts'

const absent = findProgram('python3', process.env.PATH ?? '') ? undefined : 'python3 is not installed'

describe.skipIf(absent !== undefined)(`pods${absent ? ` (${absent})` : ''}`, () => {
  let server: FakeApiServer
  let cluster: TestCluster
  let kubelet: Kubelet
  let api: Awaited<ReturnType<typeof apiOf>>
  beforeAll(async () => {
    server = await startApiServer()
    const { url, certificate: authority } = server
    const kubeconfig = writeKubeconfig(temporaryFolder(), { url, token: apiToken, authority, serverName: 'infer' })
    cluster = { kubeconfig, namespace: 'inference' }
    api = await apiOf(cluster)
    kubelet = await startKubelet(api, 'node1')
  })
  afterAll(async () => {
    await kubelet.close()
    await api.close()
    await server.close()
  })

  describePods(
    'engines as pods',
    () => cluster,
    fails => server.fail(fails),
  )
})
