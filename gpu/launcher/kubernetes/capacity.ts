import type { KubernetesPool } from '../../../core/models/pools.ts'
import { type Device, noReadings } from '../../devices/device.ts'
import { ApiRefusal, type ClusterApi } from './cluster-api.ts'
import { labels } from './pod-state.ts'

export interface NodeObject {
  metadata?: { name?: string }
  spec?: { unschedulable?: boolean; taints?: { key?: string; value?: string; effect?: string }[] }
  status?: { allocatable?: Record<string, string>; conditions?: { type?: string; status?: string }[] }
}
interface RequestingPod {
  metadata?: { labels?: Record<string, string> }
  spec?: { containers?: { resources?: { requests?: Record<string, string> } }[] }
}

type Settings = Pick<KubernetesPool, 'resource' | 'card_memory' | 'tolerations' | 'node_selector' | 'max_cards'>

/** Nodes and pods in one page of a list: nodes name all images that they have. */
const pageSize = 20
/** How many nodes are asked for their pods; those of the others count as free. */
const mostAsked = 64

/** GPUs that a node has for pods of the pool; 0 where it takes none. Pure. */
export function cardsOf(node: NodeObject, { resource, tolerations }: Settings): number {
  const { spec = {}, status = {} } = node
  const isReady = status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false
  const isBarred = (spec.taints ?? []).some(
    taint => taint.effect !== 'PreferNoSchedule' && !tolerations.some(one => tolerates(one, taint)),
  )
  return isReady && !spec.unschedulable && !isBarred ? allCardsOf(node, resource) : 0
}

/** GPUs that a node has, whether it takes pods now or not. Pure. */
export const allCardsOf = ({ status }: NodeObject, resource: string): number =>
  Math.max(0, Number(status?.allocatable?.[resource] ?? 0))

const tolerates = (
  { key, operator, value, effect }: Settings['tolerations'][number],
  taint: { key?: string; value?: string; effect?: string },
): boolean =>
  (key === undefined || key === taint.key) &&
  (effect === undefined || effect === taint.effect) &&
  (operator === 'Exists' || (value ?? '') === (taint.value ?? ''))

/** GPUs that pods of others ask for. Pure. */
export const requestedByOthers = (pods: readonly RequestingPod[], resource: string, serverId: string): number =>
  pods
    .filter(({ metadata }) => metadata?.labels?.[labels.server] !== serverId)
    .flatMap(({ spec }) => spec?.containers ?? [])
    .reduce((sum, { resources }) => sum + Number(resources?.requests?.[resource] ?? 0), 0)

/** The GPUs of nodes as devices. Kubernetes knows neither the memory of a GPU nor its use. Pure. */
export const devicesOf = (nodes: Readonly<Record<string, number>>, { resource, card_memory }: Settings): Device[] =>
  Object.entries(nodes).flatMap(([node, count]) =>
    Array.from({ length: Math.max(0, count) }, (_, index) => ({
      ...noReadings,
      id: `${node}/gpu${index}`,
      kind: 'gpu' as const,
      name: resource,
      totalBytes: card_memory,
      usedBytes: null,
      cudaId: null,
      uuid: null,
      cores: null,
    })),
  )

/** The nodes that the pool selects, as they come. */
export async function* readNodes(api: ClusterApi, settings: Settings, signal: AbortSignal): AsyncGenerator<NodeObject> {
  const labelSelector = Object.entries(settings.node_selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
  for await (const { items } of api.pages('/api/v1/nodes', { labelSelector }, pageSize, signal))
    yield* items as NodeObject[]
}

/**
 * Asks for the GPUs of a cluster that pods of others do not have. A server that may not list nodes has `max_cards` GPUs: whether
 * they are there, it learns by trying.
 */
export async function readCapacity(
  api: ClusterApi,
  settings: Settings,
  { serverId, signal }: { serverId: string; signal: AbortSignal },
): Promise<Device[]> {
  const cards: Record<string, number> = {}
  try {
    for await (const node of readNodes(api, settings, signal)) {
      const count = cardsOf(node, settings)
      if (count > 0) cards[node.metadata!.name!] = count
    }
  } catch (thrown) {
    if (!(thrown instanceof ApiRefusal && thrown.status === 403)) throw thrown
    if (settings.max_cards === undefined)
      throw new Error("the server may not list them. Let it, or set 'max_cards' of the pool", { cause: thrown })
    return devicesOf({ cluster: settings.max_cards }, settings)
  }
  for (const node of Object.keys(cards).slice(0, mostAsked)) {
    const fieldSelector = `spec.nodeName=${node},status.phase!=Succeeded,status.phase!=Failed`
    try {
      for await (const { items } of api.pages('/api/v1/pods', { fieldSelector }, pageSize, signal))
        cards[node]! -= requestedByOthers(items, settings.resource, serverId)
    } catch (thrown) {
      if (thrown instanceof ApiRefusal && thrown.status === 403) break
      throw thrown
    }
  }
  return devicesOf(cards, settings)
}
