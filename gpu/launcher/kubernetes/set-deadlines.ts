import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../../../core/log.ts'
import type { LaunchOptions } from '../launcher.ts'
import { ApiRefusal, type ClusterApi, faultWords, orAbsent, orExisting } from './cluster-api.ts'
import {
  deadlineSeconds,
  hasFailed,
  isJob,
  type JobObject,
  jobManifest,
  type OwnerReference,
  ownerReference,
} from './deadline-job.ts'
import type { HeldPod } from './listed-pods.ts'
import { podName } from './pod-manifest.ts'
import { labels } from './pod-state.ts'

/** Milliseconds before a call that has failed is repeated. */
const retryMs = 1_000
const callMs = 10_000
/** Refusals in a row after which a set counts as one without a deadline. */
const refusalsToWarn = 5

export interface SetDeadlinesOptions {
  pool: string
  serverId: string
  api: ClusterApi
  /** An image that the cluster allows in pods. */
  image: string
  /** Where the LeaderWorkerSets are. */
  setsPath: string
  /** Milliseconds for which a set stays after its deadline was moved last, and between two moves. */
  graceMs: number
  beatMs: number
  log: Log
  closing: AbortSignal
}

type Named = Pick<LaunchOptions, 'launchId' | 'engineId' | 'modelId'>
interface SetObject {
  metadata: { name: string; uid: string; deletionTimestamp?: string; ownerReferences?: OwnerReference[] }
}

/**
 * Gives each LeaderWorkerSet a deadline, and moves it for as long as this server is there: the controller of a set starts pods
 * again, so that their own end does not free their GPUs. The deadline is that of a Job, which owns the set.
 */
export function openSetDeadlines(options: SetDeadlinesOptions) {
  const { pool, serverId, api, image, setsPath, graceMs, beatMs, log, closing } = options
  const { namespace } = api
  const jobsPath = `/apis/batch/v1/namespaces/${namespace}/jobs`
  /** The uids of the Jobs that are known to own the sets of launches. */
  const owners = new Map<string, string>()
  let hasWarned = false
  const limited = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(callMs)])
  const isLive = ({ record, withdrawal }: HeldPod) => !closing.aborted && !record.end && !withdrawal

  /** Creates the Job of a launch, or finds that of an earlier attempt. */
  async function createJob(options: Named, signal: AbortSignal): Promise<OwnerReference> {
    const name = podName(options.launchId)
    const body = jobManifest({ serverId, namespace, options, graceMs, image })
    const made = await orExisting(() => api.request({ method: 'POST', path: jobsPath, body }, limited(signal)))
    const job = (made ?? (await api.request({ path: `${jobsPath}/${name}` }, limited(signal)))) as JobObject
    if (job.metadata.labels?.[labels.server] !== serverId)
      throw new ApiRefusal(422, 'AlreadyExists', `the Job ${name} belongs to somebody else`)
    if (job.metadata.deletionTimestamp !== undefined || hasFailed(job))
      throw new Error(`the Job ${name} of an earlier attempt is being deleted`)
    hasWarned = false
    return ownerReference(job)
  }

  async function move(job: JobObject, now: number): Promise<void> {
    const body = { spec: { activeDeadlineSeconds: deadlineSeconds(job, { now, graceMs }) } }
    await api.request({ method: 'PATCH', path: `${jobsPath}/${job.metadata.name}`, body }, limited(closing))
  }

  /** The set of a launch; undefined if it is gone, or going. */
  async function findSet({ record }: HeldPod): Promise<SetObject | undefined> {
    const path = `${setsPath}/${podName(record.launchId)}`
    const set = (await orAbsent(() => api.request({ path }, limited(closing)))) as SetObject | undefined
    return set?.metadata.uid === record.uid && set?.metadata.deletionTimestamp === undefined ? set : undefined
  }

  async function setOwners({ metadata: { name, uid } }: SetObject, ownerReferences: OwnerReference[]): Promise<void> {
    const body = { metadata: { uid, ownerReferences } }
    await api.request({ method: 'PATCH', path: `${setsPath}/${name}`, body }, limited(closing))
  }

  /** Makes a Job the owner of a set that has none: the role did not allow it, or the Job is new. */
  async function own(launch: HeldPod, job: JobObject | undefined): Promise<void> {
    const { record } = launch
    const set = await findSet(launch)
    if (!set) return
    const owned = set.metadata.ownerReferences ?? []
    const before = owned.find(one => isJob(one, podName(record.launchId)))
    // Somebody has deleted that Job, and Kubernetes deletes the set.
    if (before && before.uid !== job?.metadata.uid) return
    const owner = job ? ownerReference(job) : await createJob(record, closing)
    if (!before) await setOwners(set, [...owned, owner])
    owners.set(record.launchId, owner.uid)
  }

  /** Takes a set back from a Job that has reached its deadline, as when the API server was away for that long. */
  async function takeBack(launch: HeldPod): Promise<void> {
    const { launchId } = launch.record
    const set = await findSet(launch)
    if (!set) return
    const owned = set.metadata.ownerReferences ?? []
    await setOwners(
      set,
      owned.filter(one => !isJob(one, podName(launchId))),
    )
    await remove(launchId, closing)
  }

  async function extend(launch: HeldPod): Promise<void> {
    const { launchId } = launch.record
    const path = `${jobsPath}/${podName(launchId)}`
    const found = await orAbsent(() => api.dated({ path }, limited(closing)))
    let job = found?.body as JobObject | undefined
    // It ends with its set, which the watch tells.
    if (job?.metadata.deletionTimestamp !== undefined) return
    if (job && hasFailed(job)) {
      await takeBack(launch)
      job = undefined
    }
    if (job) await move(job, found!.at)
    if (!job || owners.get(launchId) !== job.metadata.uid) await own(launch, job)
    // One that was deleted meanwhile.
    if (!isLive(launch)) await remove(launchId, closing)
  }

  async function follow(launch: HeldPod): Promise<void> {
    for (let refusals = 0; isLive(launch); ) {
      let waits = Math.min(retryMs, beatMs)
      try {
        await extend(launch)
        refusals = 0
        waits = beatMs
      } catch (thrown) {
        const isRefused = thrown instanceof ApiRefusal && thrown.isFinal
        refusals = isRefused ? refusals + 1 : 0
        // An API server that has just been started refuses what its roles allow.
        if (isRefused && refusals >= refusalsToWarn) {
          warn(thrown)
          waits = beatMs
        }
      }
      await pause(waits, undefined, { signal: closing, ref: false }).catch(() => {})
    }
    owners.delete(launch.record.launchId)
  }

  function warn(refusal: ApiRefusal): void {
    if (hasWarned || closing.aborted) return
    hasWarned = true
    log.warn(
      `Engines that span nodes run without a deadline, so they keep their GPUs if this server is removed: Kubernetes refuses their Jobs. If the account lacks the right, this gives it: infer kubernetes manifest --engines-only --namespace ${namespace} | kubectl apply --filename -`,
      { pool, fault: faultWords(refusal) },
    )
  }

  async function remove(launchId: string, signal: AbortSignal): Promise<void> {
    const path = `${jobsPath}/${podName(launchId)}`
    try {
      const { metadata } = (await api.request({ path }, limited(signal))) as JobObject
      if (metadata.labels?.[labels.server] !== serverId) return
      const body = { propagationPolicy: 'Background', preconditions: { uid: metadata.uid } }
      await api.request({ method: 'DELETE', path, body }, limited(signal))
    } catch (thrown) {
      // There is none, or another, or the role allows none.
      if (!(thrown instanceof ApiRefusal && (thrown.isFinal || thrown.status === 409))) throw thrown
    }
  }

  return {
    /** The Job that is to own the set of a launch; undefined if the cluster refuses it: the set runs without a deadline then. */
    async create(options: Named, signal: AbortSignal): Promise<OwnerReference | undefined> {
      try {
        return await createJob(options, signal)
      } catch (thrown) {
        if (!(thrown instanceof ApiRefusal && thrown.isFinal) || thrown.reason === 'AlreadyExists') throw thrown
        warn(thrown)
        return undefined
      }
    },
    /** Moves the deadline of a set from now on, until its launch ends. */
    keep: (launch: HeldPod): void => void follow(launch),
    /** Deletes the Job of a launch, and with it the set, if there still is one. */
    remove,
  }
}
