import { type FakeApiServer, startApiServer, tokens } from './_api-server.ts'
import { startJobController } from './_job-controller.ts'
import { writeKubeconfig } from './_kubeconfig.ts'
import { type Kubelet, startKubelet } from './_kubelet.ts'
import { openRole, type TestRole } from './_role.ts'
import { apiOf, type TestCluster } from './_server.ts'

import { startSetController } from './_set-controller.ts'

export interface FakeCluster {
  server: FakeApiServer
  /** How infer reaches it: with the rights that the manifest gives, and no others. */
  cluster: TestCluster
  role: TestRole
  /** With all rights. */
  api: Awaited<ReturnType<typeof apiOf>>
  kubelet: Kubelet
  close(): Promise<void>
}

/** An API server of the tests with a node and the controllers of LeaderWorkerSet and Job. Its files are in a folder. */
export async function startFakeCluster(folder: string): Promise<FakeCluster> {
  const namespace = 'inference'
  const role = openRole(namespace)
  const server = await startApiServer(role)
  const { url, certificate: authority } = server
  const configOf = (who: keyof typeof tokens) =>
    writeKubeconfig(folder, { who, url, token: tokens[who], authority, serverName: 'infer' })
  const api = await apiOf({ kubeconfig: configOf('administrator'), namespace })
  const kubelet = await startKubelet(api, 'node1')
  const sets = startSetController(api)
  const jobs = startJobController(api)
  return {
    server,
    cluster: { kubeconfig: configOf('infer'), namespace },
    role,
    api,
    kubelet,
    async close() {
      await jobs.close()
      await sets.close()
      await kubelet.close()
      await api.close()
      await server.close()
    },
  }
}
