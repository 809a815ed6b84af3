import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { readAsset, selfCommand } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import type { KubernetesPool } from '../../../core/models/pools.ts'
import type { Discovery } from '../../devices/device.ts'
import { newLaunchKey } from '../launch-key.ts'
import { openRecords } from '../launch-records.ts'
import { type Launcher, type LaunchOptions, secretsIn } from '../launcher.ts'
import { singleStarts } from '../single-starts.ts'
import { readCapacity } from './capacity.ts'
import { openClusterAccess } from './cluster-access.ts'
import { ApiRefusal, faultWords, openClusterApi, orExisting } from './cluster-api.ts'
import { openClusterLists } from './cluster-lists.ts'
import type { HeldPod, PodRecord } from './listed-pods.ts'
import {
  leaderWorkerSets,
  type PodPlan,
  type PodPorts,
  podManifest,
  podName,
  secretManifest,
  setManifest,
} from './pod-manifest.ts'
import { labels, type PodObject } from './pod-state.ts'
import { refusalOf } from './refusal.ts'
import { TrackedPods } from './tracked-pods.ts'

export interface KubernetesLauncherOptions {
  /** The name of the pool. */
  pool: string
  settings: KubernetesPool
  dataDir: string
  /** Names this server among those that use the cluster. */
  serverId: string
  /** The server's environment: where the cluster is, and what programs of a kubeconfig get. */
  host: Readonly<Record<string, string | undefined>>
  log: Log
  /** Milliseconds for which a pod may stay after the time in which it should have ended. */
  lostMs?: number
}

const closeMs = 5_000
/** Milliseconds for which it is not asked again what the cluster has. */
const capacityMs = 25_000
/** Ports of a pod: below those that systems give to connections. */
const portOf = () => randomInt(10_000, 32_000)

/**
 * Starts engines as pods of a Kubernetes cluster. A wrapper in a container beside it (wrapper.py) is the only way to an engine: it
 * lets in whoever has the key of the launch, and ends with it when no server has asked during the grace of the pool.
 */
export async function openKubernetesLauncher(options: KubernetesLauncherOptions): Promise<Launcher> {
  const { pool, settings, host, log, lostMs = 60_000 } = options
  // Pools may be in one namespace, and what a pool does not know of its own pods it deletes.
  const serverId = `${options.serverId}.${pool}`
  const api = openClusterApi(await openClusterAccess(settings, host))
  const lists = openClusterLists(api)
  const records = openRecords<PodRecord>(join(options.dataDir, 'kubernetes', pool, 'launches'), log)
  const { file, args } = selfCommand([])
  const namespace = `/api/v1/namespaces/${api.namespace}`
  const wrapper = Buffer.from(readAsset('kubernetes-wrapper.py')).toString('utf8')
  const starts = singleStarts(start)
  const beatMs = Math.min(60_000, settings.orphan_grace / 4)
  const { orphan_grace: graceMs, wrapper_image: image } = settings
  const pods = new TrackedPods(
    { pool, serverId, api, lists, records, graceMs, beatMs, lostMs, image, log },
    records.all(),
  )
  let known: { at: number; discovery: Discovery } | undefined
  let hasLeft = false
  const unknown = (what: string, cause: unknown) =>
    new Error(`Kubernetes does not tell the ${what} of the pool '${pool}': ${faultWords(cause)}.`, { cause })

  async function start(given: LaunchOptions, signal: AbortSignal): Promise<void> {
    const { launchId, modelId } = given
    const before = pods.held.get(launchId)
    if (before && (before.record.uid !== null || before.record.end)) return
    const refusal = refusalOf(given, { pool, volumes: settings.volumes, self: [file, ...args] })
    if (refusal !== undefined) throw new Failure('worker_error', refusal)
    const record = before?.record ?? (await newRecord(given))
    // Written first: without its key a pod is of no use.
    await records.write(record)
    const launch = before ?? pods.hold(record)
    const needs = given.needs!
    const image = needs.image!
    const { certificate, key, ports } = record
    const plan: PodPlan = {
      settings,
      serverId,
      namespace: api.namespace,
      options: given,
      needs,
      image,
      ports,
      key: { certificate, key },
      wrapper,
      avoid: pods.unreachableNodes(),
    }
    try {
      // Before its pod, which cannot start without it. One of an earlier attempt is the same.
      await orExisting(() =>
        api.request({ method: 'POST', path: `${namespace}/secrets`, body: secretManifest(plan) }, signal),
      )
      const uid = await created(plan, signal)
      pods.accepted(launch, uid)
      void ownSecret(plan, uid)
    } catch (thrown) {
      const fault = faultWords(thrown)
      if (!(thrown instanceof ApiRefusal && thrown.isFinal))
        throw new Error(`It is not known whether Kubernetes has accepted the pod of '${modelId}': ${fault}.`, {
          cause: thrown,
        })
      pods.held.delete(launchId)
      await records.remove(launchId)
      await pods.removeRest(record, signal).catch(() => {})
      if (needs.nodes > 1 && isNotInstalled(thrown))
        throw new Failure('worker_error', noSets(pool, modelId, needs.nodes))
      throw new Failure('worker_error', `Kubernetes has refused the pod of '${modelId}': ${fault}.`, { cause: thrown })
    }
  }

  /** Creates the pod, or the set of pods, or finds that of an earlier attempt. Resolves with its uid. */
  async function created(plan: PodPlan, signal: AbortSignal): Promise<string> {
    const name = podName(plan.options.launchId)
    const spans = plan.needs.nodes > 1
    const path = spans ? pods.groups.path : `${namespace}/pods`
    const body = spans ? setManifest(plan, await pods.groups.deadlines.create(plan.options, signal)) : podManifest(plan)
    const made = await orExisting(() => api.request({ method: 'POST', path, body }, signal))
    const { metadata } = (made ?? (await api.request({ path: `${path}/${name}` }, signal))) as PodObject
    if (metadata?.labels?.[labels.server] === serverId && metadata.uid) return metadata.uid
    const what = spans ? leaderWorkerSets.kind : 'pod'
    throw new ApiRefusal(422, 'AlreadyExists', `the ${what} ${name} belongs to somebody else`)
  }

  /** With its owner the secret is removed when the pod is, also if no server is there. */
  async function ownSecret({ options: { launchId }, needs }: PodPlan, uid: string): Promise<void> {
    const name = podName(launchId)
    const { group, kind } = leaderWorkerSets
    const of = needs.nodes > 1 ? { apiVersion: `${group}/v1`, kind } : { apiVersion: 'v1', kind: 'Pod' }
    const owner = { ...of, name, uid }
    const body = { metadata: { ownerReferences: [owner] } }
    await api
      .request({ method: 'PATCH', path: `${namespace}/secrets/${name}`, body }, AbortSignal.timeout(closeMs))
      .catch((thrown: unknown) =>
        log.warn('A secret may be left should this server not come back', {
          pool,
          secret: name,
          fault: faultWords(thrown),
        }),
      )
  }

  async function stop(launchId: string, graceMs: number, signal: AbortSignal): Promise<void> {
    await starts.settled(launchId)
    const launch = pods.held.get(launchId)
    if (!launch || launch.record.end) return
    // Nobody knows whether its pod was created: the list does. Should it appear later, it is deleted, as it belongs to no engine.
    if (launch.record.uid === null) await pods.watch.relist()
    if (launch.record.uid === null && (launch.record.nodes ?? 1) > 1) {
      const found = await pods.groups.find(launch, signal)
      if (found !== null) pods.accepted(launch, found)
    }
    const { uid, end } = launch.record
    if (uid === null) return pods.end(launch, { status: null, reason: 'It was not started.' })
    if (end) return
    launch.isEnding = true
    const wasThere = await pods.delete(launch, Math.max(1, Math.ceil(graceMs / 1_000)), signal)
    if (!wasThere) await pods.watch.relist()
  }

  async function endAll(live: readonly HeldPod[]): Promise<void> {
    const signal = AbortSignal.timeout(closeMs)
    const ends = live.map(async launch => {
      if (launch.record.uid !== null) await pods.delete(launch, 5, signal)
      await pods.removeRest(launch.record, signal)
    })
    const failed = (await Promise.allSettled(ends)).filter(({ status }) => status === 'rejected')
    if (failed.length > 0) log.warn('Pods may be left: they end by themselves', { pool, pods: failed.length })
  }

  return {
    // Changes are announced by the watch.
    pollMs: 60_000,
    start: starts.start,
    async list(signal) {
      try {
        await pods.watch.fresh(signal)
      } catch (thrown) {
        throw unknown('pods', thrown)
      }
      return pods.list()
    },
    stop,
    async *logs(launchId, from, signal) {
      const output = pods.output(launchId)
      if (output) yield* output.bytes.read(from, signal)
    },
    async capacity(signal) {
      if (known && performance.now() - known.at < capacityMs) return known.discovery
      const devices = await readCapacity(lists, settings, { serverId, signal }).catch((thrown: unknown) => {
        throw unknown('nodes', thrown)
      })
      const reason = devices.length > 0 ? null : `No node of the pool '${pool}' has a free '${settings.resource}' now.`
      known = { at: performance.now(), discovery: { devices, reason, broken: false } }
      return known.discovery
    },
    watch(listener) {
      pods.listeners.add(listener)
      return () => void pods.listeners.delete(listener)
    },
    watchReach: listener => void pods.reachListeners.add(listener),
    check: pods.check,
    note: (launchId, note) => records.note(pods.held.get(launchId)?.record, note),
    async leave() {
      hasLeft = true
      await pods.close()
      await records.written()
    },
    async close() {
      // Those whose pod could not be deleted yet are among them.
      const left = [...pods.held.values()].filter(({ record, isCleaning }) => !record.end || isCleaning)
      await pods.close()
      if (!hasLeft) await endAll(left)
      await records.written()
      await lists.close()
      await api.close()
    },
  }
}

const newRecord = async ({ launchId, engineId, modelId, env, needs }: LaunchOptions): Promise<PodRecord> => ({
  version: 1,
  ...(await newLaunchKey()),
  launchId,
  engineId,
  modelId,
  uid: null,
  ports: newPorts(),
  ...(needs && needs.nodes > 1 && { nodes: needs.nodes }),
  secrets: secretsIn(env),
  note: null,
  end: null,
})

function newPorts(): PodPorts {
  const ports = new Set<number>()
  while (ports.size < 3) ports.add(portOf())
  const [wrapper, engine, meeting] = [...ports] as [number, number, number]
  return { wrapper, engine, meeting }
}

/** Whether the API server does not know the path at all: one that knows it says what of it is not there. */
const isNotInstalled = (thrown: unknown): boolean =>
  thrown instanceof ApiRefusal && thrown.status === 404 && thrown.reason === ''

const noSets = (pool: string, modelId: string, nodes: number): string =>
  `'${modelId}' spans ${nodes} nodes, and the cluster of the pool '${pool}' has no LeaderWorkerSet. Install its controller (https://lws.sigs.k8s.io), or remove 'nodes' of the model.`
