import { constants } from 'node:os'

/** What one container of a pod does. */
export interface ContainerState {
  state: 'waiting' | 'running' | 'ended'
  /** Kubernetes' word and sentence: `ErrImagePull`, `OOMKilled`; empty if there are none. */
  reason: string
  message: string
  image: string
  exitCode: number | null
}

/** One pod of a server, read from the API. Plain data. */
export interface PodState {
  name: string
  uid: string
  launchId: string
  /** Kubernetes' word: `Pending`, `Running`, `Succeeded`, `Failed`, `Unknown`. */
  phase: string
  node: string | null
  address: string | null
  /** Seconds in which it is to end; null if it is not to. */
  deletingIn: number | null
  engine: ContainerState
  wrapper: ContainerState
  /** Why Kubernetes does not place it, or has ended it: word and sentence; empty if there is nothing. */
  reason: string
  message: string
  /** Whether it is no longer in the cluster: what is known of it is what was seen last. */
  isRemoved: boolean
}

export const labels = { server: 'infer/server', launch: 'infer/launch' } as const
export const containers = { engine: 'engine', wrapper: 'wrapper' } as const

interface Condition {
  type?: string
  status?: string
  reason?: string
  message?: string
}
interface ContainerStatus {
  name?: string
  image?: string
  state?: Record<string, { reason?: string; message?: string; exitCode?: number; signal?: number } | undefined>
}
export interface PodObject {
  metadata?: {
    name?: string
    uid?: string
    labels?: Record<string, string>
    deletionTimestamp?: string
    deletionGracePeriodSeconds?: number
  }
  spec?: { nodeName?: string; containers?: { name?: string; image?: string }[] }
  status?: {
    phase?: string
    podIP?: string
    reason?: string
    message?: string
    conditions?: Condition[]
    containerStatuses?: ContainerStatus[]
  }
}

/** Reads a pod; undefined if it is none of this server. Pure. */
export function podStateIn(object: PodObject, serverId: string): PodState | undefined {
  const { metadata = {}, spec = {}, status = {} } = object
  const launchId = metadata.labels?.[labels.launch]
  if (!metadata.name || !metadata.uid || !launchId || metadata.labels?.[labels.server] !== serverId) return undefined
  const conditions = status.conditions ?? []
  const disrupted = conditions.find(({ type, status: is }) => type === 'DisruptionTarget' && is === 'True')
  const unplaced = conditions.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False')
  const cause = status.reason ? status : (disrupted ?? unplaced ?? {})
  return {
    name: metadata.name,
    uid: metadata.uid,
    launchId,
    phase: status.phase ?? 'Pending',
    node: spec.nodeName ?? null,
    address: status.podIP ?? null,
    deletingIn: metadata.deletionTimestamp === undefined ? null : (metadata.deletionGracePeriodSeconds ?? 30),
    engine: containerIn(object, containers.engine),
    wrapper: containerIn(object, containers.wrapper),
    reason: cause.reason ?? '',
    message: cause.message ?? '',
    isRemoved: false,
  }
}

function containerIn({ spec, status }: PodObject, name: string): ContainerState {
  const image = spec?.containers?.find(one => one.name === name)?.image ?? ''
  const { running, terminated, waiting } = status?.containerStatuses?.find(one => one.name === name)?.state ?? {}
  const words = terminated ?? waiting ?? {}
  return {
    state: terminated ? 'ended' : running ? 'running' : 'waiting',
    reason: words.reason ?? '',
    message: words.message ?? '',
    image,
    exitCode: terminated ? (terminated.signal ? 128 + terminated.signal : (terminated.exitCode ?? null)) : null,
  }
}

/** `3`, or `SIGKILL` for 137: a container that a signal ends has 128 and its number. */
export function statusOf(exitCode: number | null): string | null {
  if (exitCode === null) return null
  const signal = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128)?.[0]
  return signal ?? String(exitCode)
}
