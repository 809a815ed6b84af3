import type { KubernetesPool } from '../../../core/models/pools.ts'
import { type Device, noReadings } from '../../devices/device.ts'
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

export type CardSettings = Pick<
  KubernetesPool,
  'resource' | 'card_memory' | 'tolerations' | 'node_selector' | 'max_cards'
>

/** GPUs that a node has for pods of the pool; 0 where it takes none. Pure. */
export function cardsOf(node: NodeObject, { resource, tolerations }: CardSettings): number {
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

/** What is needed of a node, which names all images that it has. Pure. */
export function trimmedNode({ metadata, spec = {}, status = {} }: NodeObject, resource: string): NodeObject {
  const { unschedulable, taints } = spec
  const { allocatable = {}, conditions = [] } = status
  return {
    ...(metadata?.name !== undefined && { metadata: { name: metadata.name } }),
    spec: { ...(unschedulable && { unschedulable }), ...(taints && { taints }) },
    status: {
      allocatable: resource in allocatable ? { [resource]: allocatable[resource]! } : {},
      conditions: conditions
        .filter(({ type }) => type === 'Ready')
        .map(({ type, status: is }) => ({ type, status: is })),
    },
  }
}

const tolerates = (
  { key, operator, value, effect }: CardSettings['tolerations'][number],
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
export const devicesOf = (nodes: Readonly<Record<string, number>>, { resource, card_memory }: CardSettings): Device[] =>
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
