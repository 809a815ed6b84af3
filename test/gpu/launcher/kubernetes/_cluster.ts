import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { manifestObjects } from '../../../../cli/kubernetes/server-manifest.ts'
import { freePort } from '../../../../gpu/launcher/address.ts'
import type { ClusterApi } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'
import { writeKubeconfig } from './_kubeconfig.ts'
import { createSetResource, prepareSetController, untilSetsAreAdmitted } from './_real-sets.ts'
import { apiOf, type TestCluster } from './_server.ts'

/**
 * The folder with the programs etcd and kube-apiserver, by which the tests of pods run on a real API server too; with
 * kube-controller-manager, the deadlines of sets do. With lws-controller (cmd of sigs.k8s.io/lws) and its definition of the
 * resource as leaderworkersets.yaml sets are those of the real controller.
 */
const programs = process.env.INFER_TEST_KUBERNETES

/** Why there is no real API server; undefined if there is one. */
export const noCluster: string | undefined =
  programs === undefined
    ? 'INFER_TEST_KUBERNETES names no folder with etcd and kube-apiserver'
    : ['etcd', 'kube-apiserver'].map(name => join(programs, name)).find(path => !existsSync(path))

/** Why no controllers run there; undefined if they do. */
export const noControllers: string | undefined =
  noCluster ??
  (existsSync(join(programs!, 'kube-controller-manager')) ? undefined : 'there is no kube-controller-manager')

/** Why sets have no controller but that of the tests; undefined if the real one runs. */
export const noSetController: string | undefined =
  noControllers ??
  ['lws-controller', 'leaderworkersets.yaml'].map(name => join(programs!, name)).find(path => !existsSync(path))

export type RealCluster = Awaited<ReturnType<typeof startCluster>>

const resources: Record<string, string> = {
  ServiceAccount: 'serviceaccounts',
  Role: 'roles',
  RoleBinding: 'rolebindings',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  ConfigMap: 'configmaps',
  Service: 'services',
  StatefulSet: 'statefulsets',
}

/** Creates a namespace and objects, of which the API server must know every field. Resolves with what it has made of them. */
export async function createAll(api: ClusterApi, namespace: string, objects: readonly object[]): Promise<object[]> {
  const signal = AbortSignal.timeout(20_000)
  const query = { fieldValidation: 'Strict' }
  const create = async (path: string, body: object) =>
    (await api.request({ method: 'POST', path, query, body }, signal)) as object
  await create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  const made: object[] = []
  for (const object of objects as { apiVersion: string; kind: string; metadata: { namespace?: string } }[]) {
    const { apiVersion, kind, metadata } = object
    const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
    const within = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`
    made.push(await create(`${group}${within}/${resources[kind]}`, object))
  }
  return made
}

/** A token of the service account of infer, as its pod gets one. */
async function tokenOf(api: ClusterApi): Promise<string> {
  const path = `/api/v1/namespaces/${api.namespace}/serviceaccounts/infer/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3_600 } }
  const { status } = (await api.request({ method: 'POST', path, body }, AbortSignal.timeout(20_000))) as {
    status: { token: string }
  }
  return status.token
}

/** Starts etcd and a real API server on loopback, with their files in a folder; nodes and controllers are not there. */
export async function startCluster(folder: string) {
  const [port, clients, peers] = (await Promise.all([1, 2, 3].map(freePort))) as [number, number, number]
  const token = 'of-the-test'
  const children = new Map<string, ChildProcess>()
  writeFileSync(join(folder, 'tokens.csv'), `${token},lab,lab,system:masters\n`)
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(join(folder, 'accounts.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  writeFileSync(join(folder, 'accounts.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
  /** What a program prints is kept where `SHOW_CLUSTER` names a folder. */
  const output = (name: string): StdioOptions => {
    const kept = process.env.SHOW_CLUSTER
    return kept === undefined ? 'ignore' : ['ignore', ...[1, 2].map(() => openSync(join(kept, `${name}.log`), 'a'))]
  }
  const begin = (name: string, ...args: string[]) =>
    void children.set(name, spawn(join(programs!, name), args, { cwd: folder, stdio: output(name), detached: true }))
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
  const namespace = 'inference'
  const reach = {
    url: `https://127.0.0.1:${port}`,
    authority: readFileSync(authority, 'utf8'),
    serverName: 'kubernetes',
  }
  const kubeconfig = writeKubeconfig(folder, { who: 'administrator', token, ...reach })
  const api = await apiOf({ kubeconfig, namespace })
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
    for (const name of ['lws-controller', 'kube-controller-manager', 'kube-apiserver', 'etcd'])
      await kill(name, 'SIGKILL')
  }
  let setArguments: string[] = []
  let cluster: TestCluster
  try {
    await isReady()
    await createAll(api, namespace, manifestObjects({ namespace, image: undefined, storage: '1Gi' }))
    cluster = { kubeconfig: writeKubeconfig(folder, { who: 'infer', token: await tokenOf(api), ...reach }), namespace }
  } catch (thrown) {
    await close()
    throw thrown
  }
  return {
    /** How infer reaches it: by the token of the service account that the manifest makes. */
    cluster,
    /** The controllers of Jobs, StatefulSets and owners, and that of LeaderWorkerSet where it is there. */
    async startControllers(): Promise<void> {
      const hasSets = noSetController === undefined
      await createSetResource(api, hasSets ? join(programs!, 'leaderworkersets.yaml') : undefined)
      const names = ['job', 'ttl-after-finished', 'garbage-collector', 'statefulset']
      begin(
        'kube-controller-manager',
        `--kubeconfig=${kubeconfig}`,
        `--controllers=${names.map(name => `${name}-controller`).join(',')}`,
        '--leader-elect=false',
        '--bind-address=127.0.0.1',
        `--secure-port=${await freePort()}`,
        '--cert-dir=manager-certificates',
      )
      if (!hasSets) return
      setArguments = [`--kubeconfig=${kubeconfig}`, ...(await prepareSetController(api, folder))]
      await this.startSetController()
    },
    async startSetController(): Promise<void> {
      begin('lws-controller', ...setArguments)
      await untilSetsAreAdmitted(api)
    },
    killSetController: () => kill('lws-controller', 'SIGKILL'),
    /** With all rights, and a kubeconfig of that. */
    api,
    administrator: kubeconfig,
    kill: () => kill('kube-apiserver', 'SIGKILL'),
    async restart(): Promise<void> {
      apiServer()
      await isReady()
    },
    close,
  }
}
