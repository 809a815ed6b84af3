import { invalid } from '../../core/failure.ts'
import { queueIdOf } from '../../core/ids.ts'
import { executionEventTypes } from '../../core/store/event-types.ts'
import {
  type JobError,
  type JobEvent,
  type JobRecord,
  type JobStatus,
  jobEventTypes,
  organizationEventTypes,
} from '../../core/store/store.ts'
import type { SharedRecord, SseRecord } from '../http/answer/sse.ts'
import type { Owners } from '../http/request/owners.ts'
import { hasEnded, progressOf, resultText, type Viewer, waitingObject } from './job-record.ts'
import { seconds } from './view-of.ts'

/** Characters. A result up to this length is part of its event; a longer one is read with its job. */
const maxResultLength = 64 << 10

const statusAfter: Record<JobEvent['type'], JobStatus> = {
  'job.created': 'pending',
  'job.started': 'processing',
  'job.retrying': 'pending',
  'job.waiting': 'pending',
  'job.completed': 'completed',
  'job.failed': 'failed',
  'job.cancelled': 'cancelled',
}
export const isLast = (type: JobEvent['type']): boolean => hasEnded({ status: statusAfter[type] })

export const eventId = (sequence: number): string => `evt_${sequence}`

/** Returns the record of an event. All types have one shape; the job or execution is in `data`. */
export function record(type: string, at: number, id: string | undefined, data: string): SseRecord {
  const head = JSON.stringify({
    ...(id === undefined ? {} : { id }),
    type,
    timestamp: new Date(at).toISOString(),
    created_at: seconds(at),
  })
  return { event: type, data: `${head.slice(0, -1)},"data":${data}}`, ...(id === undefined ? {} : { id }) }
}

/** Returns the snapshot event, from which a reader continues after the event of `sequence`. */
export const snapshot = (sequence: number, data: string): SseRecord =>
  record('snapshot', Date.now(), eventId(sequence), data)

/** Returns a snapshot event for many streams: `end`, from `sharedEnd`, is in memory once. */
export function sharedSnapshot(sequence: number, end: Buffer): SharedRecord {
  const record = snapshot(sequence, '')
  return { ...record, data: record.data.slice(0, -1), end }
}
export const sharedEnd = (data: string): Buffer => Buffer.from(`${data}}\n\n`)

/** Returns an event of the log with the fields of its job that never change and those that the event changed. */
export function eventRecord(event: JobEvent, job: JobRecord, viewer: Viewer, owners: Owners<'files'>): SseRecord {
  const status = statusAfter[event.type]
  const data = JSON.stringify({
    job_id: event.jobId,
    queue_id: queueIdOf(event.jobId),
    task: job.task,
    model_id: job.modelId,
    slug: job.slug,
    status,
    attempt: event.attempt,
    ...(status === 'failed' ? { error: job.error } : {}),
    ...(event.data === null ? {} : { error: JSON.parse(event.data) as JobError }),
  })
  const result = status === 'completed' ? shortResult(job, viewer, owners) : undefined
  return record(
    event.type,
    event.at,
    eventId(event.sequence),
    result === undefined ? data : `${data.slice(0, -1)},"result":${result}}`,
  )
}

function shortResult({ task, result }: JobRecord, viewer: Viewer, owners: Owners<'files'>) {
  if (result === null) return 'null'
  if (typeof result !== 'string' || result.length > maxResultLength) return undefined
  return resultText(task, result, viewer, owners)
}

/** Returns the event of the end of a synchronous call. It is not in the event log, so it has no id. */
export const callEnded = (job: JobRecord): SseRecord =>
  record(
    `job.${job.status}`,
    job.finishedAt ?? job.updatedAt,
    undefined,
    JSON.stringify({ job_id: job.id, task: job.task, model_id: job.modelId, status: job.status, error: job.error }),
  )

/** Returns the progress of a job. It is not stored, so it has no event id. Undefined if nothing is known. */
export function progressRecord(job: JobRecord, owners: Owners<'jobs'>): SseRecord | undefined {
  const { progress, queuePosition, etaMs, waitingFor } = progressOf(job, owners)
  if (progress === null && queuePosition === null) return undefined
  const data = JSON.stringify({
    job_id: job.id,
    status: job.status,
    progress: progress === null ? null : Math.round(progress * 1000) / 1000,
    queue_position: queuePosition,
    eta_seconds: etaMs === null ? null : Math.ceil(etaMs / 1000),
    waiting_for: waitingFor && waitingObject(waitingFor),
  })
  return record('job.progress', Date.now(), undefined, data)
}

const known: readonly string[] = [
  ...jobEventTypes,
  'job.progress',
  ...executionEventTypes,
  ...organizationEventTypes,
  ...['started', 'retrying', 'completed', 'failed', 'cancelled', 'progress'].map(
    one => `workflow_execution.node.${one}`,
  ),
]

/** Parses a list such as `job.*,job.created` into a predicate. Throws Failure `invalid_value` for an unknown type. */
export function typesWanted(text: string | undefined): (type: string) => boolean {
  if (text === undefined) return () => true
  const patterns = text.split(',').map(part => part.trim())
  const unknown = patterns.find(part => !/^(\*|[a-z_.]+\.\*)$/.test(part) && !known.includes(part))
  if (unknown !== undefined)
    throw invalid(
      'types',
      `'types' has the unknown type ${JSON.stringify(unknown.slice(0, 60))}. Use ${known.join(', ')}, or \`job.*\` for all events of jobs.`,
    )
  return type =>
    patterns.some(part => part === type || part === '*' || (part.endsWith('.*') && type.startsWith(part.slice(0, -1))))
}

/** Describes the query parameter `after` of event streams. */
export const resumeText =
  'Id of the last event that you received, such as `evt_42`, to continue after it. The header `Last-Event-ID` wins over it. Default: begin with events from now on.'
