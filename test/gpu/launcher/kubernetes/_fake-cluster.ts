import { type FakeApiServer, startApiServer, tokens } from './_api-server.ts'
import { type Kubelet, startKubelet } from './_kubelet.ts'
import { openRole, type TestRole } from './_role.ts'
import { apiOf, type TestCluster, writeKubeconfig } from './_server.ts'

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

/** An API server of the tests with a node, whose files are in a folder. */
export async function startFakeCluster(folder: string): Promise<FakeCluster> {
  const namespace = 'inference'
  const role = openRole(namespace)
  const server = await startApiServer(role)
  const { url, certificate: authority } = server
  const configOf = (who: keyof typeof tokens) =>
    writeKubeconfig(folder, { who, url, token: tokens[who], authority, serverName: 'infer' })
  const api = await apiOf({ kubeconfig: configOf('administrator'), namespace })
  const kubelet = await startKubelet(api, 'node1')
  return {
    server,
    cluster: { kubeconfig: configOf('infer'), namespace },
    role,
    api,
    kubelet,
    async close() {
      await kubelet.close()
      await api.close()
      await server.close()
    },
  }
}
