import type { Device } from '../../devices/device.ts'
import { ApiRefusal } from './cluster-api.ts'
import type { ClusterLists } from './cluster-lists.ts'
import { type CardSettings, cardsOf, devicesOf, type NodeObject } from './node-cards.ts'

/** How many nodes are asked for their pods; those of the others count as free. */
const mostAsked = 64

/** The nodes that the pool selects. Rejects with ApiRefusal 403 where the server may not list them. */
export async function readNodes(
  lists: ClusterLists,
  settings: CardSettings,
  signal: AbortSignal,
): Promise<NodeObject[]> {
  const labelSelector = Object.entries(settings.node_selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
  const of = { kind: 'nodes', resource: settings.resource } as const
  return await lists.items('/api/v1/nodes', { labelSelector }, of, signal)
}

/** The GPUs of these nodes that pods of others do not have. */
export async function freeCards(
  lists: ClusterLists,
  nodes: readonly NodeObject[],
  { settings, serverId, signal }: { settings: CardSettings; serverId: string; signal: AbortSignal },
): Promise<Device[]> {
  const { resource } = settings
  const cards: Record<string, number> = {}
  for (const node of nodes) {
    const count = cardsOf(node, settings)
    if (count > 0) cards[node.metadata!.name!] = count
  }
  for (const node of Object.keys(cards).slice(0, mostAsked)) {
    const fieldSelector = `spec.nodeName=${node},status.phase!=Succeeded,status.phase!=Failed`
    const of = { kind: 'requests', resource, serverId } as const
    try {
      for (const requested of await lists.items('/api/v1/pods', { fieldSelector }, of, signal))
        cards[node]! -= requested
    } catch (thrown) {
      if (thrown instanceof ApiRefusal && thrown.status === 403) break
      throw thrown
    }
  }
  return devicesOf(cards, settings)
}

/**
 * Asks for the GPUs of a cluster that pods of others do not have. A server that may not list nodes has `max_cards` GPUs: whether
 * they are there, it learns by trying.
 */
export async function readCapacity(
  lists: ClusterLists,
  settings: CardSettings,
  { serverId, signal }: { serverId: string; signal: AbortSignal },
): Promise<Device[]> {
  try {
    const nodes = await readNodes(lists, settings, signal)
    return await freeCards(lists, nodes, { settings, serverId, signal })
  } catch (thrown) {
    if (!(thrown instanceof ApiRefusal && thrown.status === 403)) throw thrown
    if (settings.max_cards === undefined)
      throw new Error("the server may not list them. Let it, or set 'max_cards' of the pool", { cause: thrown })
    return devicesOf({ cluster: settings.max_cards }, settings)
  }
}
