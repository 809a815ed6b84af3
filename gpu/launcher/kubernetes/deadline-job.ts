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
/** Seconds from the deadline of a Job to its deletion, in which a server that could not move it in time takes its set back. */
const failedSeconds = 5

/**
 * The Job that owns the LeaderWorkerSet of a launch. It runs no pod: it is there for its deadline alone, after which Kubernetes
 * deletes it with all that it owns, also if no server is left. Pure.
 */
export const jobManifest = (of: {
  serverId: string
  namespace: string
  options: Pick<LaunchOptions, 'launchId' | 'engineId' | 'modelId'>
  graceMs: number
  image: string
}): object => ({
  ...kind,
  metadata: metadataOf(of),
  spec: {
    parallelism: 0,
    activeDeadlineSeconds: Math.ceil(of.graceMs / 1_000),
    ttlSecondsAfterFinished: failedSeconds,
    // Required, and never used.
    template: { spec: { restartPolicy: 'Never', containers: [{ name: 'none', image: of.image }] } },
  },
})

export const ownerReference = ({ metadata: { name, uid } }: JobObject): OwnerReference => ({
  ...kind,
  name,
  uid,
  blockOwnerDeletion: false,
})

export const isJob = (owner: OwnerReference, name: string): boolean => owner.kind === kind.kind && owner.name === name

/**
 * The `activeDeadlineSeconds` by which a Job ends `graceMs` from now; `now` is the clock of the cluster, which tells whole seconds.
 * Before its controller has seen it, its start is not earlier than its creation. Pure.
 */
export function deadlineSeconds({ metadata, status }: JobObject, { now, graceMs }: { now: number; graceMs: number }) {
  const start = Date.parse(status?.startTime ?? metadata.creationTimestamp ?? '') || now
  return Math.ceil((Math.max(0, now - start) + graceMs) / 1_000) + 1
}

/** Whether a Job has reached its deadline, which cannot be moved any more: `Failed` comes after `FailureTarget`. */
export const hasFailed = ({ status }: JobObject): boolean =>
  (status?.conditions ?? []).some(({ type = '', status: is }) => type.startsWith('Fail') && is === 'True')
