import type { LaunchRecord } from '../launch-records.ts'
import type { Launch } from '../launcher.ts'
import { launchStateOf, unseenReason } from './pod-launch-state.ts'
import type { PodPorts } from './pod-manifest.ts'
import type { PodState } from './pod-state.ts'

export interface PodRecord extends LaunchRecord {
  /** The uid of its pod, or of its LeaderWorkerSet; null while it is not known whether that was created. */
  uid: string | null
  ports: PodPorts
  /** How many nodes it spans; absent: one. More are the pods of a LeaderWorkerSet. */
  nodes?: number
}

/** A launch of this server. */
export interface HeldPod {
  record: PodRecord
  /** Its pod as it was seen last. */
  pod: PodState | undefined
  /** Number of the first list that must have its pod: those before may have begun earlier. */
  expectedFrom: number
  /** Whether it is to end. */
  isEnding: boolean
  /** When its pod was first seen to be deleted, on the monotonic clock; null if it is not. */
  deletingSince: number | null
  /** The last warning of Kubernetes about it. */
  event: string | undefined
  /** Whether its pod is being removed, as it has ended. */
  isCleaning: boolean
  /** The deletion of its LeaderWorkerSet, and the seconds that its pods get to end; null if there is none. */
  withdrawal: { seconds: number; isAccepted: boolean } | null
}

type End = Pick<Launch, 'status' | 'reason'>

/**
 * What follows from what is known of the pods of this server. `list`: the number of the list by which all of them are known;
 * null if only some have changed. `lostMs`: how long after its time a pod that is deleted may stay. Pure.
 */
export function comparePods(
  held: ReadonlyMap<string, HeldPod>,
  pods: readonly PodState[],
  { list, now, lostMs }: { list: number | null; now: number; lostMs: number },
) {
  /** Pods that must not run, because they belong to no engine that is wanted. */
  const surplus: PodState[] = []
  const found = new Map<string, PodState>()
  const ended: { launchId: string; end: End }[] = []
  /** Launches that span nodes, without a pod: their LeaderWorkerSet tells whether they will have some. */
  const unseen: string[] = []
  for (const pod of pods) {
    const launch = held.get(pod.launchId)
    const record = launch?.record
    // A set that is removed without an id was never created.
    const isNew = record?.uid === null && (!pod.isRemoved || pod.group !== undefined)
    const isOwn = record !== undefined && (record.uid === pod.uid || isNew)
    if (isOwn && !record.end) found.set(pod.launchId, pod)
    else if (!pod.isRemoved && pod.deletingIn === null && !(isOwn && launch?.isCleaning)) surplus.push(pod)
  }
  for (const [launchId, { record, expectedFrom, pod: before, deletingSince, isEnding }] of held) {
    if (record.end) continue
    const pod = found.get(launchId)
    if (pod) {
      const { state, status, reason } = launchStateOf(pod)
      if (state === 'gone') ended.push({ launchId, end: { status, reason: pod.isRemoved && isEnding ? null : reason } })
      else if (isLost(pod, deletingSince, now, lostMs))
        ended.push({ launchId, end: { status: null, reason: `Its node '${pod.node}' does not answer.` } })
    } else if (list === null || list < expectedFrom) continue
    else if ((record.nodes ?? 1) > 1) unseen.push(launchId)
    else {
      const last = before && launchStateOf({ ...before, isRemoved: true })
      ended.push({
        launchId,
        end: {
          status: last?.status ?? null,
          reason: last?.reason ?? (record.uid === null ? 'It was not started.' : 'Its pod was deleted.'),
        },
      })
    }
  }
  return { found, ended, surplus, unseen }
}

/** A pod stays for as long as its node does not say that it has ended. */
const isLost = ({ deletingIn }: PodState, since: number | null, now: number, lostMs: number): boolean =>
  deletingIn !== null && since !== null && now > since + deletingIn * 1_000 + lostMs

/**
 * What the launcher lists of a launch; undefined while nobody knows whether its pod was created. `isUnreachable`: its wrapper
 * cannot be reached.
 */
export function listedPod({ record, pod, isEnding, event }: HeldPod, isUnreachable = false): Launch | undefined {
  const { launchId, engineId, modelId, secrets, note, end, certificate, key, ports } = record
  const same = { launchId, engineId, modelId, secrets, pid: null, endsAt: null }
  if (end)
    return { ...same, state: 'gone', status: end.status, reason: end.reason, node: null, endpoint: null, note: null }
  if (record.uid === null && !pod) return undefined
  const { state, reason } = pod ? launchStateOf(pod, event) : { state: 'pending' as const, reason: unseenReason(event) }
  return {
    ...same,
    state: isEnding ? 'ending' : state,
    reason,
    status: null,
    node: pod?.node ?? null,
    endpoint:
      state === 'running' && pod?.address && !isEnding
        ? { origin: originOf(pod.address, ports.wrapper), tls: { certificate, key }, generation: 1 }
        : null,
    ...(isUnreachable && state === 'running' && !isEnding && { isUnreachable }),
    note,
  }
}

const originOf = (host: string, port: number): string => `https://${host.includes(':') ? `[${host}]` : host}:${port}`
