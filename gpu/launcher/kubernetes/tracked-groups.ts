import { ApiRefusal, orAbsent } from './cluster-api.ts'
import type { HeldPod } from './listed-pods.ts'
import { applyPart, joinedPod, newGroup, type PodGroup } from './pod-groups.ts'
import { leaderWorkerSets, podName } from './pod-manifest.ts'
import type { PodState } from './pod-state.ts'
import { openSetDeadlines, type SetDeadlinesOptions } from './set-deadlines.ts'

const callMs = 10_000

export interface TrackedGroupsOptions extends Omit<SetDeadlinesOptions, 'setsPath'> {
  held: ReadonlyMap<string, HeldPod>
  /** Called when the pods of a launch, taken together, are something else. */
  changed: (pod: PodState) => void
  /** Deletes a pod, with so many seconds to end. */
  remove: (pod: { name: string; uid: string }, seconds: number, signal: AbortSignal) => Promise<unknown>
}

interface SetMetadata {
  uid: string
  deletionTimestamp?: string
}

/**
 * The launches that span nodes, each of which is a LeaderWorkerSet: makes one state of the pods of each, and ends all of them
 * with the first that ends.
 */
export function openTrackedGroups(options: TrackedGroupsOptions) {
  const { api, held, changed, remove, closing } = options
  const groups = new Map<string, PodGroup>()
  const path = `/apis/${leaderWorkerSets.group}/v1/namespaces/${api.namespace}/${leaderWorkerSets.resource}`
  const deadlines = openSetDeadlines({ ...options, setsPath: path })
  const limited = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(callMs)])

  function joined(group: PodGroup): PodState {
    const { record, withdrawal } = held.get(group.launchId) ?? {}
    const isDeleted = withdrawal?.isAccepted ?? false
    return joinedPod(group, { uid: record?.uid ?? '', size: record?.nodes ?? 1, isDeleted })
  }

  /** Pods that are deleted with their set have the usual time to end; a launch may have less. */
  function shorten({ parts }: PodGroup, { withdrawal }: HeldPod): void {
    if (!withdrawal) return
    for (const { name, uid, deletingIn } of parts.values())
      if (deletingIn !== null && deletingIn > withdrawal.seconds)
        void remove({ name, uid }, withdrawal.seconds, closing).catch(() => {})
  }

  /** Deletes the set of a launch. Its pods follow. */
  async function withdraw(launch: HeldPod, seconds: number, signal: AbortSignal): Promise<void> {
    const { launchId } = launch.record
    const { withdrawal: before } = launch
    const withdrawal = {
      seconds: Math.min(seconds, before?.seconds ?? seconds),
      isAccepted: before?.isAccepted ?? false,
    }
    launch.withdrawal = withdrawal
    await removeSet(launchId, launch.record.uid, signal)
    withdrawal.isAccepted = true
    const group = groups.get(launchId) ?? newGroup(launchId)
    shorten(group, launch)
    changed(joined(group))
  }

  /**
   * Deletes a set so that all of its pods are deleted at once. Else those after the first, which belong to it, would be deleted only
   * when it is gone: after its time to end, or, if its node is lost, never.
   */
  async function removeSet(launchId: string, uid: string | null, signal: AbortSignal): Promise<void> {
    const body = { propagationPolicy: 'Foreground', ...(uid !== null && { preconditions: { uid } }) }
    try {
      await api.request({ method: 'DELETE', path: `${path}/${podName(launchId)}`, body }, limited(signal))
    } catch (thrown) {
      // Another set has its name now, or none.
      if (!(thrown instanceof ApiRefusal && (thrown.status === 404 || thrown.status === 409))) throw thrown
    }
  }

  return {
    path,
    deadlines,
    /** The pods as launches have them: those of a set as one. `isWhole`: all pods were listed. */
    take(pods: readonly PodState[], isWhole: boolean): PodState[] {
      const touched = new Set<PodGroup>(isWhole ? groups.values() : [])
      const names = new Set(pods.map(({ name }) => name))
      const isEnding = (launchId: string) => held.get(launchId)?.isEnding ?? false
      for (const group of touched)
        for (const part of group.parts.values())
          if (!names.has(part.name)) applyPart(group, { ...part, isRemoved: true }, isEnding(group.launchId))
      for (const pod of pods) {
        if (pod.rank === null) continue
        const group = groups.get(pod.launchId) ?? newGroup(pod.launchId)
        groups.set(pod.launchId, group)
        applyPart(group, pod, isEnding(pod.launchId))
        touched.add(group)
      }
      const together = [...touched].map(group => {
        const launch = held.get(group.launchId)
        if (launch) shorten(group, launch)
        if (group.parts.size === 0 && (!launch || launch.record.end)) groups.delete(group.launchId)
        return joined(group)
      })
      return [...pods.filter(({ rank }) => rank === null), ...together]
    },
    /** The launch ends with the first of its parts. A call that fails is to be repeated. */
    endWithFirst(launch: HeldPod): void {
      if (launch.record.end || launch.withdrawal || !groups.get(launch.record.launchId)?.fault) return
      void withdraw(launch, 1, closing).catch(() => (launch.withdrawal = null))
    },
    withdraw,
    removeSet,
    /** The uid of the set of a launch; null if there is none, or it is being deleted, which ends the launch. */
    async find(launch: HeldPod, signal: AbortSignal): Promise<string | null> {
      const { launchId } = launch.record
      const found = await orAbsent(() => api.request({ path: `${path}/${podName(launchId)}` }, limited(signal)))
      const { uid, deletionTimestamp } = (found as { metadata: SetMetadata } | undefined)?.metadata ?? {}
      if (uid !== undefined && deletionTimestamp === undefined) return uid
      launch.withdrawal = { seconds: 1, isAccepted: true }
      changed(joined(groups.get(launchId) ?? newGroup(launchId)))
      return null
    },
  }
}
export type TrackedGroups = ReturnType<typeof openTrackedGroups>
