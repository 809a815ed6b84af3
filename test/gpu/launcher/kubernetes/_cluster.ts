import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../../../gpu/launcher/address.ts'
import { apiOf, type TestCluster, writeKubeconfig } from './_server.ts'

/** The folder with the programs etcd and kube-apiserver, by which the tests of pods run on a real API server too. */
const programs = process.env.INFER_TEST_KUBERNETES

/** Why there is no real API server; undefined if there is one. */
export const noCluster: string | undefined =
  programs === undefined
    ? 'INFER_TEST_KUBERNETES names no folder with etcd and kube-apiserver'
    : ['etcd', 'kube-apiserver'].map(name => join(programs, name)).find(path => !existsSync(path))

export type RealCluster = Awaited<ReturnType<typeof startCluster>>

/** Starts etcd and a real API server on loopback, with their files in a folder; nodes and controllers are not there. */
export async function startCluster(folder: string) {
  const [port, clients, peers] = (await Promise.all([1, 2, 3].map(freePort))) as [number, number, number]
  const token = 'of-the-test'
  const children = new Map<string, ChildProcess>()
  writeFileSync(join(folder, 'tokens.csv'), `${token},lab,lab,system:masters\n`)
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(join(folder, 'accounts.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  writeFileSync(join(folder, 'accounts.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
  const begin = (name: string, ...args: string[]) =>
    void children.set(name, spawn(join(programs!, name), args, { cwd: folder, stdio: 'ignore', detached: true }))
  const apiServer = () =>
    begin(
      'kube-apiserver',
      `--etcd-servers=http://127.0.0.1:${clients}`,
      '--cert-dir=certificates',
      '--bind-address=127.0.0.1',
      '--endpoint-reconciler-type=none',
      '--advertise-address=10.0.0.1',
      `--secure-port=${port}`,
      '--service-cluster-ip-range=10.99.0.0/24',
      '--service-account-issuer=https://lab',
      '--service-account-key-file=accounts.pub',
      '--service-account-signing-key-file=accounts.key',
      '--token-auth-file=tokens.csv',
      '--authorization-mode=RBAC',
      '--disable-admission-plugins=ServiceAccount',
    )
  const peer = `http://127.0.0.1:${peers}`
  const client = `http://127.0.0.1:${clients}`
  begin(
    'etcd',
    '--data-dir=etcd',
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  )
  apiServer()
  const authority = join(folder, 'certificates/apiserver.crt')
  while (!existsSync(authority)) await pause(100)
  const url = `https://127.0.0.1:${port}`
  const kubeconfig = writeKubeconfig(folder, {
    url,
    token,
    authority: readFileSync(authority, 'utf8'),
    serverName: 'kubernetes',
  })
  const cluster: TestCluster = { kubeconfig, namespace: 'default' }
  const api = await apiOf(cluster)
  const isReady = async () => {
    const limit = performance.now() + 45_000
    for (;;)
      try {
        return void (await api.request({ path: '/api/v1/namespaces/default' }, AbortSignal.timeout(2_000)))
      } catch (thrown) {
        if (performance.now() > limit) throw thrown
        await pause(100)
      }
  }
  const kill = async (name: string, how: NodeJS.Signals) => {
    const child = children.get(name)
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(how)
    await gone
  }
  const close = async () => {
    await api.close()
    for (const name of ['kube-apiserver', 'etcd']) await kill(name, 'SIGKILL')
  }
  try {
    await isReady()
  } catch (thrown) {
    await close()
    throw thrown
  }
  return {
    cluster,
    api,
    kill: () => kill('kube-apiserver', 'SIGKILL'),
    async restart(): Promise<void> {
      apiServer()
      await isReady()
    },
    close,
  }
}
