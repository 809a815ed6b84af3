import { randomUUID } from 'node:crypto'
import { type ApiRefusal, type ClusterApi, faultWords } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'
import { followChanges } from './_follow-changes.ts'

interface Template {
  metadata: { labels: Record<string, string> }
  spec: { containers: { env?: object[] }[] }
}
interface ReplicaSet {
  metadata: { name: string; uid: string; deletionTimestamp?: string }
  spec: { leaderWorkerTemplate: { size: number; leaderTemplate: Template; workerTemplate: Template } }
}
interface Part {
  metadata: { name: string; uid: string; labels?: Record<string, string>; deletionTimestamp?: string }
}

const setName = 'leaderworkerset.sigs.k8s.io/name'

/**
 * The controller of LeaderWorkerSet in small: makes the pods of each set of a namespace with their labels and variables, and those
 * again that are deleted while their set is there. As with the real one the pods after the first belong to the first: they are
 * created after it, and deleted after it is gone.
 */
export function startSetController(api: ClusterApi) {
  const closing = new AbortController()
  const { signal } = closing
  const sets = new Map<string, ReplicaSet>()
  const firsts = new Map<string, Part>()
  const core = `/api/v1/namespaces/${api.namespace}`
  const path = `/apis/leaderworkerset.x-k8s.io/v1/namespaces/${api.namespace}/leaderworkersets`

  async function create({ metadata: { name, uid }, spec: of }: ReplicaSet, rank: number, first?: Part): Promise<void> {
    const { size, leaderTemplate, workerTemplate } = of.leaderWorkerTemplate
    const { metadata, spec } = structuredClone(first ? workerTemplate : leaderTemplate)
    const own = {
      LWS_LEADER_ADDRESS: `${name}-0.${name}.${api.namespace}`,
      LWS_GROUP_SIZE: String(size),
      LWS_WORKER_INDEX: String(rank),
    }
    const variables = Object.entries(own).map(([variable, value]) => ({ name: variable, value }))
    for (const container of spec.containers) container.env = [...variables, ...(container.env ?? [])]
    const labels = {
      [setName]: name,
      'leaderworkerset.sigs.k8s.io/group-index': '0',
      'leaderworkerset.sigs.k8s.io/worker-index': String(rank),
    }
    const hostname = first ? `${name}-0-${rank}` : `${name}-0`
    const owner = first
      ? { apiVersion: 'v1', kind: 'Pod', name: first.metadata.name, uid: first.metadata.uid }
      : { apiVersion: 'leaderworkerset.x-k8s.io/v1', kind: 'LeaderWorkerSet', name, uid }
    const body = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...metadata,
        name: hostname,
        namespace: api.namespace,
        labels: { ...metadata.labels, ...labels },
        ownerReferences: [owner],
      },
      spec: { ...spec, hostname, subdomain: name },
    }
    try {
      await api.request({ method: 'POST', path: `${core}/pods`, body }, signal)
    } catch (thrown) {
      // One of the same name still ends: this one is made after that.
      if ((thrown as ApiRefusal).reason === 'AlreadyExists') return
      // The real one makes pods by StatefulSets, whose controller says it like this.
      const set = first ? `${name}-0` : name
      const message = `Create Pod ${hostname} in StatefulSet ${set} failed error: ${faultWords(thrown)}`
      const involvedObject = { kind: 'StatefulSet', name: set }
      const event = { metadata: { name: randomUUID() }, type: 'Warning', involvedObject, message }
      await api.request({ method: 'POST', path: `${core}/events`, body: event }, signal)
    }
  }

  async function seenSet(type: string, set: ReplicaSet): Promise<void> {
    const { name, uid, deletionTimestamp } = set.metadata
    if (type === 'DELETED' || deletionTimestamp !== undefined) return void sets.delete(name)
    if (sets.has(name)) return
    sets.set(name, set)
    await create(set, 0)
    const ownerReferences = [{ apiVersion: 'leaderworkerset.x-k8s.io/v1', kind: 'LeaderWorkerSet', name, uid }]
    const spec = { clusterIP: 'None', selector: { [setName]: name }, publishNotReadyAddresses: true }
    const body = { apiVersion: 'v1', kind: 'Service', metadata: { name, ownerReferences }, spec }
    await api.request({ method: 'POST', path: `${core}/services`, body }, signal)
  }

  async function seenPod(type: string, pod: Part): Promise<void> {
    const { name, uid, labels = {}, deletionTimestamp } = pod.metadata
    const set = sets.get(labels[setName] ?? '')
    const rank = Number(/-0-(\d+)$/.exec(name)?.[1] ?? 0)
    const first = firsts.get(labels[setName] ?? '')
    if (rank === 0 && (type === 'DELETED' || deletionTimestamp !== undefined)) firsts.delete(labels[setName] ?? '')
    if (!set) return
    if (type === 'DELETED') {
      if (rank === 0) await create(set, 0)
      else if (first) await create(set, rank, first)
    } else if (rank === 0 && deletionTimestamp === undefined && first?.metadata.uid !== uid) {
      firsts.set(set.metadata.name, pod)
      for (let other = 1; other < set.spec.leaderWorkerTemplate.size; other++) await create(set, other, pod)
    }
  }

  const following = [followChanges(api, path, seenSet, signal), followChanges(api, `${core}/pods`, seenPod, signal)]
  return {
    async close(): Promise<void> {
      closing.abort()
      await Promise.all(following)
    },
  }
}
