import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import { fine, type InspectionFinding } from '../../core/inspection.ts'
import type { Model } from '../../core/models/model.ts'
import { type KubernetesPool, poolsOf } from '../../core/models/pools.ts'
import { nodesOf } from '../../core/models/spanned-nodes.ts'
import { freeCards, readNodes } from '../launcher/kubernetes/capacity.ts'
import { type ClusterAccess, openClusterAccess } from '../launcher/kubernetes/cluster-access.ts'
import { ApiRefusal, type ClusterApi, openClusterApi, orAbsent } from '../launcher/kubernetes/cluster-api.ts'
import { type ClusterLists, openClusterLists } from '../launcher/kubernetes/cluster-lists.ts'
import { openKubernetesLauncher } from '../launcher/kubernetes/kubernetes.ts'
import { leaderWorkerSets, podManifest } from '../launcher/kubernetes/pod-manifest.ts'
import {
  clusterRules,
  deadlineRules,
  namespaceRules,
  type RoleRule,
  spanningRules,
} from '../launcher/kubernetes/role-rules.ts'
import { launchNeeds } from '../launcher/launch-needs.ts'
import { imageOf } from '../presets/model-image.ts'
import { unconfined } from '../sandbox/level.ts'
import type { PoolCheckOptions } from './check-pool.ts'
import {
  callFinding,
  clusterRightsFinding,
  deadlineFinding,
  imagesFinding,
  nodesFinding,
  podFinding,
  rightsFinding,
  setsFinding,
  trialPodFindings,
} from './kubernetes-findings.ts'
import { faultFinding } from './pool-findings.ts'
import { tryLaunch } from './trial-launch.ts'
import { trialServer } from './trial-server.ts'

/** Milliseconds for all calls of one check, and in which a trial pod must have answered: its node may pull its image. */
const checkMs = 30_000
const trialMs = 120_000

/**
 * Checks a pool of Kubernetes: address, certificate and credentials, each right of the role, the nodes and their GPUs, by a dry
 * run whether a pod would be accepted, the images of the models, and by a pod without GPUs whether one can be started and
 * reached. Never throws.
 */
export async function* checkKubernetesPool(
  options: PoolCheckOptions<KubernetesPool>,
): AsyncGenerator<InspectionFinding> {
  let access: ClusterAccess
  try {
    access = await openClusterAccess(options.settings, options.environment)
  } catch (thrown) {
    return yield faultFinding('cluster', (thrown as Error).message, 'Try the same kubeconfig by hand: kubectl get pods')
  }
  const api = openClusterApi(access)
  const lists = openClusterLists(api)
  try {
    if (yield* checkCluster({ api, lists }, options, access.server)) yield* tryPod(options)
  } catch (thrown) {
    yield callFinding(thrown, access.server)
  } finally {
    await lists.close()
    await api.close()
  }
}

/** What the API server alone says. Returns whether a pod may be tried; rejects where it does not answer. */
async function* checkCluster(
  { api, lists }: { api: ClusterApi; lists: ClusterLists },
  { pool, settings, models }: PoolCheckOptions<KubernetesPool>,
  server: string,
): AsyncGenerator<InspectionFinding, boolean> {
  const signal = () => AbortSignal.timeout(checkMs)
  const { gitVersion = 'of an unknown version' } = (await api.request({ path: '/version' }, signal())) as {
    gitVersion?: string
  }
  yield fine('cluster', `${server} answers, Kubernetes ${gitVersion}`)
  const spanning = models.filter(model => nodesOf(model) > 1)
  const lacks = (rules: readonly RoleRule[], namespace?: string) => missingRights(api, rules, namespace, signal())
  const needed = spanning.length > 0 ? [...namespaceRules, ...spanningRules] : namespaceRules
  const [inNamespace, inCluster] = await Promise.all([lacks(needed, api.namespace), lacks(clusterRules)])
  yield rightsFinding(inNamespace, api.namespace)
  yield clusterRightsFinding(inCluster, api.namespace, settings.max_cards)

  if (spanning.length > 0) {
    const ids = spanning.map(({ id }) => id)
    yield setsFinding(await hasSets(api, signal()), ids)
    yield deadlineFinding(await lacks(deadlineRules, api.namespace), api.namespace, settings.orphan_grace)
  }
  const cards = Math.max(1, ...models.map(({ devices }) => (typeof devices === 'number' ? devices : 1)))
  if (!inCluster.includes('list nodes')) {
    const nodes = await readNodes(lists, settings, signal())
    const free = await freeCards(lists, nodes, { settings, serverId: '', signal: signal() })
    yield nodesFinding(nodes, settings, { needed: cards, free: free.length })
  }
  yield imagesFinding(
    models.map(model => {
      const use = poolsOf(model).find(one => one.pool === pool)
      return { id: model.id, image: imageOf(model, use, settings) }
    }),
  )
  if (inNamespace.includes('create pods')) return false
  const refusal = await dryRun(api, settings, cards, signal())
  yield podFinding(refusal, cards, api.namespace)
  return !refusal && inNamespace.length === 0
}

/** Whether the cluster knows LeaderWorkerSets. */
const hasSets = async (api: ClusterApi, signal: AbortSignal): Promise<boolean> =>
  (await orAbsent(() => api.request({ path: `/apis/${leaderWorkerSets.group}/v1` }, signal))) !== undefined

/** The rights of some rules that the account does not have, as `list events`. */
async function missingRights(
  api: ClusterApi,
  rules: readonly RoleRule[],
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<string[]> {
  const rights = rules.flatMap(({ apiGroups, resources, verbs }) =>
    resources.flatMap(resource => verbs.map(verb => ({ group: apiGroups[0]!, resource, verb }))),
  )
  const answers = await Promise.all(
    rights.map(async right => {
      const [resource, subresource] = right.resource.split('/')
      const resourceAttributes = {
        ...right,
        resource,
        ...(subresource && { subresource }),
        ...(namespace && { namespace }),
      }
      const answer = (await api.request(
        {
          method: 'POST',
          path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
          body: {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SelfSubjectAccessReview',
            spec: { resourceAttributes },
          },
        },
        signal,
      )) as { status?: { allowed?: boolean } }
      return answer.status?.allowed ? [] : [`${right.verb} ${right.resource}`]
    }),
  )
  return answers.flat()
}

/** Asks for the largest pod of the pool, without its being created. Resolves with the refusal, if there is one. */
async function dryRun(
  api: ClusterApi,
  settings: KubernetesPool,
  cards: number,
  signal: AbortSignal,
): Promise<ApiRefusal | undefined> {
  const launchId = `doctor-${process.pid}`
  const body = podManifest({
    settings,
    serverId: 'doctor',
    namespace: api.namespace,
    options: {
      launchId,
      engineId: 'doctor',
      modelId: 'doctor',
      argv: ['true'],
      channel: 'socket',
      env: {},
      visibleDevices: {},
      sandbox: unconfined,
    },
    needs: launchNeeds(cards, 0, null),
    image: { name: settings.wrapper_image },
    ports: { wrapper: 20_000, engine: 20_001 },
    key: { certificate: '', key: '' },
    wrapper: '',
  })
  const path = `/api/v1/namespaces/${api.namespace}/pods`
  try {
    await api.request({ method: 'POST', path, query: { dryRun: 'All' }, body }, signal)
    return undefined
  } catch (thrown) {
    if (thrown instanceof ApiRefusal && thrown.isFinal) return thrown
    throw thrown
  }
}

/** Runs a pod by the launcher itself, so that everything is tried that an engine needs. */
async function* tryPod({ pool, settings, models, environment, log }: PoolCheckOptions<KubernetesPool>) {
  const folder = mkdtempSync(join(tmpdir(), 'infer-doctor-'))
  try {
    const launcher = await openKubernetesLauncher({
      pool,
      settings: { ...settings, orphan_grace: 60_000 },
      dataDir: folder,
      serverId: basename(folder).toLowerCase(),
      host: environment,
      log,
    })
    const argv = ['/usr/bin/env', 'python3', '-c', trialServer, '{socket}', ...sourcesOf(models)]
    const image = { name: settings.wrapper_image }
    const needs = { ...launchNeeds(0, 0, null), cpus: 1, memoryBytes: 2 ** 28, image }
    const trial = await tryLaunch(launcher, { argv, needs, limitMs: trialMs })
    await launcher.close()
    yield* trialPodFindings(trial)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const sourcesOf = (models: readonly Model[]): string[] => [
  ...new Set(models.flatMap(({ source }) => (source !== undefined && isAbsolute(source) ? [source] : []))),
]
