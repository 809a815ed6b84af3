import { Failure } from '../../core/failure.ts'
import { queueIdOf } from '../../core/ids.ts'
import { type JobEvent, type JobRecord, type JobStatus, jobEventTypes } from '../../core/store/store.ts'
import { executionEventTypes } from '../../core/store/workflows.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import type { SharedRecord, SseRecord } from '../sse.ts'
import { hasEnded, progressOf, resultText } from './job-record.ts'

/** A result up to this length comes with the event that tells of it; a longer one is read with its job. */
const longestResult = 64 << 10

const statusAfter: Record<JobEvent['type'], JobStatus> = {
  'job.created': 'pending',
  'job.started': 'processing',
  'job.retrying': 'pending',
  'job.completed': 'completed',
  'job.failed': 'failed',
  'job.cancelled': 'cancelled',
}
export const isLast = (type: JobEvent['type']): boolean => hasEnded({ status: statusAfter[type] })

export const eventId = (sequence: number): string => `evt_${sequence}`

/** The record of an event: one shape for all types, what it is about under `data`. */
export function record(type: string, at: number, id: string | undefined, data: string): SseRecord {
  const head = JSON.stringify({
    ...(id === undefined ? {} : { id }),
    type,
    timestamp: new Date(at).toISOString(),
    created_at: Math.floor(at / 1000),
  })
  return { event: type, data: `${head.slice(0, -1)},"data":${data}}`, ...(id === undefined ? {} : { id }) }
}

/** The state from which a reader goes on behind the event of `sequence`. */
export const snapshot = (sequence: number, data: string): SseRecord =>
  record('snapshot', Date.now(), eventId(sequence), data)

/** The same for many streams: `sharedEnd` of the data is in memory once. */
export function sharedSnapshot(sequence: number, end: Buffer): SharedRecord {
  const record = snapshot(sequence, '')
  return { ...record, data: record.data.slice(0, -1), end }
}
export const sharedEnd = (data: string): Buffer => Buffer.from(`${data}}\n\n`)

/** Returns an event of the log with the facts of its job that never change, and those that the event changed. */
export function eventRecord(event: JobEvent, job: JobRecord, call: Call, owners: Pick<Owners, 'files'>): SseRecord {
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
  })
  const result = status === 'completed' ? shortResult(job, call, owners) : undefined
  return record(
    event.type,
    event.at,
    eventId(event.sequence),
    result === undefined ? data : `${data.slice(0, -1)},"result":${result}}`,
  )
}

function shortResult({ task, result }: JobRecord, call: Call, owners: Pick<Owners, 'files'>): string | undefined {
  if (result === null) return 'null'
  if (typeof result !== 'string' || result.length > longestResult) return undefined
  return resultText(task, result, call, owners)
}

/** The end of a synchronous call: the log of events knows nothing of those, so there is nothing to resume from. */
export const callEnded = (job: JobRecord): SseRecord =>
  record(
    `job.${job.status}`,
    job.finishedAt ?? job.updatedAt,
    undefined,
    JSON.stringify({ job_id: job.id, task: job.task, model_id: job.modelId, status: job.status, error: job.error }),
  )

/** How far it is: not kept, so it has no id. Undefined where nothing is known. */
export function progressRecord(job: JobRecord, owners: Pick<Owners, 'jobs'>): SseRecord | undefined {
  const { progress, queuePosition, etaMs, waitingFor } = progressOf(job, owners)
  if (progress === null && queuePosition === null) return undefined
  const data = JSON.stringify({
    job_id: job.id,
    status: job.status,
    progress: progress === null ? null : Math.round(progress * 1000) / 1000,
    queue_position: queuePosition,
    eta_seconds: etaMs === null ? null : Math.ceil(etaMs / 1000),
    waiting_for: waitingFor && {
      reason: waitingFor.reason,
      detail: waitingFor.detail,
      eta_seconds: waitingFor.etaMs === null ? null : Math.ceil(waitingFor.etaMs / 1000),
    },
  })
  return record('job.progress', Date.now(), undefined, data)
}

const known: readonly string[] = [
  ...jobEventTypes,
  'job.progress',
  ...executionEventTypes,
  ...['started', 'retrying', 'completed', 'failed', 'cancelled', 'progress'].map(
    one => `workflow_execution.node.${one}`,
  ),
]

/** `job.*,job.created` as a test. Throws Failure `invalid_value` for a type that there is not. */
export function typesWanted(text: string | undefined): (type: string) => boolean {
  if (text === undefined) return () => true
  const patterns = text.split(',').map(part => part.trim())
  const wrong = patterns.find(part => !/^(\*|[a-z_.]+\.\*)$/.test(part) && !known.includes(part))
  if (wrong !== undefined)
    throw new Failure(
      'invalid_value',
      `'types' names ${JSON.stringify(wrong.slice(0, 60))}; there is ${known.join(', ')}, and \`job.*\` for all of them.`,
      { param: 'types' },
    )
  return type =>
    patterns.some(part => part === type || part === '*' || (part.endsWith('.*') && type.startsWith(part.slice(0, -1))))
}

/** Describes the query parameter `after` of event streams. */
export const resumeText =
  'Id of the last event that you received, such as `evt_42`, to continue after it. The header `Last-Event-ID` wins over it. Default: begin with events from now on.'

/**
 * After which event a reader goes on: what it was given last, under `Last-Event-ID` or `?after=`; the first of the two
 * is the newer, because a browser repeats the address that it was given once. Undefined where it begins.
 */
export function resumeFrom(call: Call): number | undefined {
  const header = call.req.headers['last-event-id']
  const given = typeof header === 'string' && header !== '' ? header : call.query.get('after')
  if (given === null) return undefined
  const sequence = /^evt_(\d{1,15})$/.exec(given)?.[1]
  if (sequence === undefined)
    throw new Failure('invalid_value', `'after' must be the id of an event, such as \`evt_42\`.`, { param: 'after' })
  return Number(sequence)
}
