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
  /** Which part of a launch that spans nodes it is: 0 for the first; null for one that is a whole launch. */
  rank: number | null
  /** Of the pods of a launch that spans nodes taken together: what only they have. */
  group?: GroupState
}

export interface GroupState {
  /** How the first of them has ended, by which the launch ends; null while all of them run or wait. */
  fault: { status: string | null; reason: string | null } | null
  /** The ranks of those that have begun to run. */
  begun: readonly number[]
  /** The uid of one that has a node and does not run yet; null if there is none. */
  waiting: string | null
  /** The name of the StatefulSet whose pods are missing; null if all are there. */
  incomplete: string | null
}

export const labels = {
  server: 'infer/server',
  launch: 'infer/launch',
  /** Given by the controller of a LeaderWorkerSet. */
  rank: 'leaderworkerset.sigs.k8s.io/worker-index',
} as const
export const containers = { engine: 'engine', wrapper: 'wrapper' } as const

interface Condition {
  type?: string
  status?: string
  reason?: string
  message?: string
}
interface StateWords {
  reason?: string
  message?: string
  exitCode?: number
  signal?: number
}
interface ContainerStatus {
  name?: string
  image?: string
  state?: Record<string, StateWords | undefined>
  /** How it has ended before it was started again, which only pods of a LeaderWorkerSet are. */
  lastState?: { terminated?: StateWords }
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
    rank: metadata.labels[labels.rank] === undefined ? null : Number(metadata.labels[labels.rank]),
  }
}

function containerIn({ spec, status }: PodObject, name: string): ContainerState {
  const image = spec?.containers?.find(one => one.name === name)?.image ?? ''
  const { state = {}, lastState } = status?.containerStatuses?.find(one => one.name === name) ?? {}
  // It runs once: what was started again in its place runs nothing.
  const { running, waiting, terminated = lastState?.terminated } = state
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
