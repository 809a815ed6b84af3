import type { LaunchRecord } from '../launch-records.ts'
import type { Launch } from '../launcher.ts'
import { isOver, launchStateOf } from './job-states.ts'
import type { SlurmJob } from './queue-lines.ts'
import { warnedMs } from './submission.ts'

export interface SlurmRecord extends LaunchRecord {
  /** Null while it is not known whether its job was accepted. */
  jobId: string | null
  /** Its wrapper ends the engine before its time limit: see `warnedMs`. */
  isWarned?: boolean
}

/** A launch of this server. */
export interface HeldLaunch {
  record: SlurmRecord
  /** Its job when it was listed last. */
  job: SlurmJob | undefined
  /** Number of the first list that must have its job: those before may have been asked for earlier. */
  expectedFrom: number
  /** Whether it is to end. */
  isEnding: boolean
  /** Its job was submitted with nodes on which it must not run, because engines there could not be reached. */
  avoids: boolean
}

/** How a launch ends of which Slurm knows nothing any more. */
const forgotten = { status: null, reason: 'Slurm does not know its job any more.' }

/** What follows from a list of the jobs of this server. `list`: its number. Pure. */
export function compareJobs(held: ReadonlyMap<string, HeldLaunch>, jobs: readonly SlurmJob[], list: number) {
  const byLaunch = Map.groupBy(jobs, job => job.comment!.launchId)
  /** Jobs that must not run: a second one of a launch, submitted while nobody knew of the first, or one of no launch that is wanted. */
  const surplus: SlurmJob[] = []
  const found = new Map<string, SlurmJob>()
  const ended: { launchId: string; end: { status: string | null; reason: string | null } }[] = []

  for (const [launchId, all] of byLaunch) {
    const record = held.get(launchId)?.record
    const own = all.find(({ jobId }) => jobId === record?.jobId) ?? all.reduce(earlier)
    for (const job of all)
      if (!isOver(job) && (job !== own || !record || record.end || launchStateOf(job).state === 'gone'))
        surplus.push(job)
    if (record) found.set(launchId, own)
  }
  for (const [launchId, { record, expectedFrom }] of held) {
    if (record.end) continue
    const job = found.get(launchId)
    if (job) {
      const { state, status, reason } = launchStateOf(job)
      if (state === 'gone') ended.push({ launchId, end: { status, reason } })
    } else if (record.jobId !== null && list >= expectedFrom) ended.push({ launchId, end: forgotten })
  }
  return { found, ended, surplus }
}

const earlier = (one: SlurmJob, other: SlurmJob): SlurmJob => (Number(other.jobId) < Number(one.jobId) ? other : one)

/**
 * What the launcher lists of a launch; undefined while nobody knows whether its job was accepted. `isUnreachable`: its wrapper
 * cannot be reached.
 */
export function listedLaunch({ record, job, isEnding }: HeldLaunch, isUnreachable = false): Launch | undefined {
  const { launchId, engineId, modelId, secrets, note, end, certificate, key, isWarned } = record
  const same = { launchId, engineId, modelId, secrets, pid: null }
  if (end)
    return {
      ...same,
      state: 'gone',
      status: end.status,
      reason: end.reason,
      node: null,
      endpoint: null,
      endsAt: null,
      note: null,
    }
  if (record.jobId === null && !job) return undefined
  const { state, reason } = job ? launchStateOf(job) : { state: 'pending' as const, reason: 'It waits for Slurm.' }
  const address = state === 'running' ? job?.comment?.address : undefined
  return {
    ...same,
    state: isEnding ? 'ending' : state,
    reason,
    status: null,
    node: job?.node ?? null,
    endpoint: address
      ? { origin: originOf(address), tls: { certificate, key }, generation: job!.comment!.generation }
      : null,
    endsAt: job?.endsAt ? job.endsAt - (isWarned ? warnedMs : 0) : null,
    ...(isUnreachable && state === 'running' && !isEnding && { isUnreachable }),
    note,
  }
}

const originOf = ({ host, port }: { host: string; port: number }): string =>
  `https://${host.includes(':') ? `[${host}]` : host}:${port}`
