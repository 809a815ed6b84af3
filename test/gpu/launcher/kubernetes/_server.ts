import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { InspectionFinding } from '../../../../core/inspection.ts'
import type { Model } from '../../../../core/models/model.ts'
import { type KubernetesPool, PoolSettings } from '../../../../core/models/pools.ts'
import { openClusterAccess } from '../../../../gpu/launcher/kubernetes/cluster-access.ts'
import { openClusterApi } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'
import { openKubernetesLauncher } from '../../../../gpu/launcher/kubernetes/kubernetes.ts'
import type { Launch, Launcher, LaunchOptions } from '../../../../gpu/launcher/launcher.ts'
import { checkPool } from '../../../../gpu/pool-checks/check-pool.ts'
import { fetchHealth } from '../../../../gpu/requests/health.ts'
import { fixtureProgram } from '../../../_fixtures.ts'
import { keptLog, launchOptions, temporary, until } from '../_launch.ts'

/** A cluster of a test: how it is reached. */
export interface TestCluster {
  kubeconfig: string
  namespace: string
}

export const kubernetesSettings = (cluster: TestCluster, of: object = {}): KubernetesPool =>
  PoolSettings.parse({
    kind: 'kubernetes',
    orphan_grace: '3s',
    card_memory: '80GiB',
    ...cluster,
    ...of,
  }) as KubernetesPool

export const apiOf = async (cluster: TestCluster) =>
  openClusterApi(await openClusterAccess(kubernetesSettings(cluster), process.env))

/** A data directory and a name on the cluster. */
export interface KubernetesServer {
  dataDir: string
  serverId: string
  pool?: string
}
export const newServer = (): KubernetesServer => ({ dataDir: temporary(), serverId: `srv-${randomUUID().slice(0, 8)}` })

/** Opens the launcher of a server; it is closed after the test. */
export async function openAt(
  cluster: TestCluster,
  server: KubernetesServer = newServer(),
  changes: object = {},
  lostMs?: number,
): Promise<Launcher & { log: ReturnType<typeof keptLog> }> {
  const log = keptLog()
  const settings = kubernetesSettings(cluster, changes)
  const more = lostMs === undefined ? {} : { lostMs }
  const launcher = await openKubernetesLauncher({ pool: 'k8s', settings, ...server, host: process.env, log, ...more })
  onTestFinished(() => launcher.close())
  return { ...launcher, log }
}

/** A fake engine that takes one card, of an image that has node. */
export const podOptions = (
  launchId: string,
  flags: readonly string[],
  more: Partial<LaunchOptions> = {},
  image = 'engine:1',
): LaunchOptions => {
  const options = launchOptions(launchId, [...flags], more)
  const hasImage = options.argv[0] === process.execPath
  const needs = {
    nodes: 1,
    cards: 1,
    cpus: 1,
    memoryBytes: 1 << 20,
    maxMs: null,
    ...(hasImage && { image: { name: image } }),
  }
  return { ...options, needs, ...more }
}

/** A fake engine on so many nodes, with two cards on each. */
export function spanningOptions(launchId: string, nodes: number, flags: readonly string[] = []): LaunchOptions {
  const rank = ['--nnodes', '{nodes}', '--node-rank', '{node_rank}']
  const first = ['--master-addr', '{first_node}', '--master-port', '{first_node_port}']
  const program = [process.execPath, fixtureProgram('spanning-engine')]
  const argv = [...program, '--socket', '{socket}', ...rank, ...first, ...flags]
  const needs = { nodes, cards: 2, cpus: 1, memoryBytes: 1 << 20, maxMs: null, image: { name: 'engine:1' } }
  return podOptions(launchId, [], { argv, needs, otherNodes: ['--headless'] })
}

/** Waits until the launch is listed like this. A list that fails is repeated. */
export async function listed(
  launcher: Launcher,
  launchId: string,
  holds: (launch: Launch) => boolean | Promise<boolean>,
): Promise<Launch> {
  let found: Launch | undefined
  await until(async () => {
    const all = await launcher.list(AbortSignal.timeout(20_000)).catch(() => [])
    found = all.find(one => one.launchId === launchId)
    return found !== undefined && (await holds(found))
  })
  return found!
}

export const isReady = async ({ endpoint }: Launch): Promise<boolean> =>
  endpoint !== null && (await fetchHealth(endpoint, '/health', [], 2_000)).health === 'ready'
export const isGone = ({ state }: Launch): boolean => state === 'gone'

/** What doctor finds of a pool that these models use, by the name of each finding. */
export async function doctorOf(
  cluster: TestCluster,
  models: readonly Model[],
): Promise<ReadonlyMap<string, InspectionFinding>> {
  const found = new Map<string, InspectionFinding>()
  const settings = kubernetesSettings(cluster)
  const options = { pool: 'k8s', settings, models, dataDir: temporary(), environment: process.env, log: keptLog() }
  for await (const finding of checkPool(options)) found.set(finding.name, finding)
  return found
}
