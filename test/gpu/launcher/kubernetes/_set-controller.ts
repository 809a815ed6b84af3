import type { ClusterApi } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'
import { followChanges } from './_follow-changes.ts'

interface Template {
  metadata: { labels: Record<string, string> }
  spec: { containers: { env?: object[] }[] }
}
interface ReplicaSet {
  metadata: { name: string; uid: string }
  spec: { leaderWorkerTemplate: { size: number; leaderTemplate: Template; workerTemplate: Template } }
}
interface Part {
  metadata: { name: string; ownerReferences?: { uid: string }[] }
}

/**
 * The controller of LeaderWorkerSet in small: makes the pods of each set of a namespace with their labels and variables, and those
 * again that are deleted while their set is there. The address of the first pod is loopback, as there is no DNS.
 */
export function startSetController(api: ClusterApi) {
  const closing = new AbortController()
  const { signal } = closing
  const sets = new Map<string, ReplicaSet>()
  const core = `/api/v1/namespaces/${api.namespace}/pods`
  const path = `/apis/leaderworkerset.x-k8s.io/v1/namespaces/${api.namespace}/leaderworkersets`

  async function create(set: ReplicaSet, rank: number): Promise<void> {
    const { name, uid } = set.metadata
    const { size, leaderTemplate, workerTemplate } = set.spec.leaderWorkerTemplate
    const { metadata, spec } = structuredClone(rank === 0 ? leaderTemplate : workerTemplate)
    const own = { LWS_LEADER_ADDRESS: '127.0.0.1', LWS_GROUP_SIZE: String(size), LWS_WORKER_INDEX: String(rank) }
    const variables = Object.entries(own).map(([variable, value]) => ({ name: variable, value }))
    for (const container of spec.containers) container.env = [...variables, ...(container.env ?? [])]
    const labels = {
      'leaderworkerset.sigs.k8s.io/name': name,
      'leaderworkerset.sigs.k8s.io/group-index': '0',
      'leaderworkerset.sigs.k8s.io/worker-index': String(rank),
    }
    const body = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...metadata,
        name: rank === 0 ? `${name}-0` : `${name}-0-${rank}`,
        namespace: api.namespace,
        labels: { ...metadata.labels, ...labels },
        ownerReferences: [{ apiVersion: 'leaderworkerset.x-k8s.io/v1', kind: 'LeaderWorkerSet', name, uid }],
      },
      spec,
    }
    await api.request({ method: 'POST', path: core, body }, signal)
  }

  async function seenSet(type: string, set: ReplicaSet): Promise<void> {
    const { uid } = set.metadata
    if (type === 'DELETED') return void sets.delete(uid)
    if (sets.has(uid)) return
    sets.set(uid, set)
    for (let rank = 0; rank < set.spec.leaderWorkerTemplate.size; rank++) await create(set, rank)
  }

  async function seenPod(type: string, { metadata: { name, ownerReferences } }: Part): Promise<void> {
    const set = sets.get(ownerReferences?.[0]?.uid ?? '')
    if (type === 'DELETED' && set) await create(set, Number(/-0-(\d+)$/.exec(name)?.[1] ?? 0))
  }

  const following = [followChanges(api, path, seenSet, signal), followChanges(api, core, seenPod, signal)]
  return {
    async close(): Promise<void> {
      closing.abort()
      await Promise.all(following)
    },
  }
}
