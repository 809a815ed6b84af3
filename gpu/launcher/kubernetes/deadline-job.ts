import type { LaunchOptions } from '../launcher.ts'
import { metadataOf } from './pod-manifest.ts'

/** A Job as far as it is read here. */
export interface JobObject {
  metadata: {
    name: string
    uid: string
    creationTimestamp?: string
    deletionTimestamp?: string
    labels?: Record<string, string>
  }
  status?: { startTime?: string; conditions?: { type?: string; status?: string }[] }
}

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  blockOwnerDeletion?: boolean
}

const kind = { apiVersion: 'batch/v1', kind: 'Job' } as const

/**
 * The Job that owns the LeaderWorkerSet of a launch. It runs no pod: it is there for its deadline alone, after which Kubernetes
 * deletes it with all that it owns, also if no server is left. Pure.
 */
export const jobManifest = (of: {
  serverId: string
  namespace: string
  options: Pick<LaunchOptions, 'launchId' | 'engineId' | 'modelId'>
  graceMs: number
}): object => ({
  ...kind,
  metadata: metadataOf(of),
  spec: {
    parallelism: 0,
    activeDeadlineSeconds: Math.ceil(of.graceMs / 1_000),
    ttlSecondsAfterFinished: 0,
    // Required, and never used: a template may lack an image.
    template: { spec: { restartPolicy: 'Never', containers: [{ name: 'none' }] } },
  },
})

export const ownerReference = ({ metadata: { name, uid } }: JobObject): OwnerReference => ({
  ...kind,
  name,
  uid,
  blockOwnerDeletion: false,
})

/** The owners of a set with this Job among them, in the place of an earlier one of the same name. Pure. */
export const ownersWith = (owners: readonly OwnerReference[], job: OwnerReference): OwnerReference[] => [
  ...owners.filter(one => one.kind !== job.kind || one.name !== job.name),
  job,
]

/**
 * The `activeDeadlineSeconds` by which a Job ends `graceMs` from now; `now` is the clock of the cluster, which tells whole seconds.
 * Before its controller has seen it, its start is not earlier than its creation. Pure.
 */
export function deadlineSeconds({ metadata, status }: JobObject, { now, graceMs }: { now: number; graceMs: number }) {
  const start = Date.parse(status?.startTime ?? metadata.creationTimestamp ?? '') || now
  return Math.ceil((Math.max(0, now - start) + graceMs) / 1_000) + 1
}

/** Whether a Job has reached its deadline, or is being deleted: nothing moves its deadline any more. */
export const isOver = ({ metadata, status }: JobObject): boolean =>
  metadata.deletionTimestamp !== undefined ||
  (status?.conditions ?? []).some(one => /^Fail/.test(one.type ?? '') && one.status === 'True')
