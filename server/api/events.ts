import { z } from 'zod'
import { type JobEventType, type JobRecord, jobEventTypes } from '../../core/store/store.ts'
import type { OrganizationEvent } from '../../core/store/workflows.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { EventStream, type SseRecord } from '../sse.ts'
import { nameOf, recordOf } from './execution-event.ts'
import { executionSummary } from './execution-record.ts'
import { beginning, follow, openBell, pageSize } from './following.ts'
import { callEnded, eventRecord, isLast, progressRecord, snapshot, typesWanted } from './job-event.ts'
import { findJob, hasEnded, summaryText } from './job-record.ts'

const tag = 'Events'
/** Unfinished jobs in the snapshot of an organization. */
const mostShown = 100

type JobOwners = Pick<Owners, 'files' | 'jobs'>
type EventOwners = JobOwners & Pick<Owners, 'executions'>

async function followJob(call: Call, owners: JobOwners): Promise<void> {
  const id = call.params.id!
  const found = await findJob(id, call, owners)
  const from = await beginning(call, owners)
  const bell = openBell()
  const stop = owners.jobs.follow(id, bell.ring)
  const stream = new EventStream(call)
  void stream.over.then(bell.ring)
  try {
    if (found.kind === 'sync') return await followCall(found, stream, call, owners)
    // Read after the place in the log: what happens in between is told twice rather than not at all.
    let job: JobRecord | undefined = await find(id, call, owners)
    if (!job) return stream.end()
    stream.send(snapshot(from, `{"job":${summaryText(job, owners)}}`))
    let told = ''
    await follow({
      call,
      stream,
      from,
      page: sequence => owners.jobs.events.after(call.caller.organizationId, { sequence, jobId: id, limit: pageSize }),
      heard: bell.heard,
      async take(event) {
        job = await find(id, call, owners)
        if (!job) return false
        stream.send(eventRecord(event, job, call, owners))
        return !isLast(event.type)
      },
      async idle() {
        job = await find(id, call, owners)
        // It had ended before the place from which the reader goes on, or was deleted.
        if (!job || hasEnded(job)) return false
        const progress = progressRecord(job, owners)
        const text = progress ? progress.data.slice(progress.data.indexOf('"data":')) : ''
        if (progress && text !== told) stream.send(progress)
        told = text
        return true
      },
    })
  } finally {
    stop()
    stream.end()
  }
}

/** A synchronous call has no events in the log: its end is heard from itself. */
async function followCall(
  job: JobRecord,
  stream: EventStream,
  call: Call,
  owners: Pick<Owners, 'jobs'>,
): Promise<void> {
  stream.send(snapshot(0, `{"job":${summaryText(job, owners)}}`))
  if (hasEnded(job)) return
  await Promise.race([owners.jobs.calls.ended(job.organizationId, job.id), stream.over])
  if (!stream.ended) stream.send(callEnded(await findJob(job.id, call, owners)))
}

const isJobEvent = (type: string): type is JobEventType => (jobEventTypes as readonly string[]).includes(type)

/** What an event tells of a job; undefined where that is nothing, or nothing that is wanted. */
async function jobRecordOf(
  { jobId, type, ...event }: OrganizationEvent,
  wanted: (type: string) => boolean,
  call: Call,
  owners: JobOwners,
): Promise<SseRecord | undefined> {
  const job = jobId !== null && isJobEvent(type) && wanted(type) ? await find(jobId, call, owners) : undefined
  return job && isJobEvent(type) ? eventRecord({ ...event, type, jobId: job.id }, job, call, owners) : undefined
}

/** The same of an execution. */
async function executionRecordOf(
  { executionId, ...event }: OrganizationEvent,
  wanted: (type: string) => boolean,
  call: Call,
  owners: Pick<Owners, 'executions' | 'files'>,
): Promise<SseRecord | undefined> {
  const name = executionId === null ? undefined : nameOf(event)
  if (executionId === null || name === undefined || !wanted(name)) return undefined
  return recordOf({ ...event, executionId }, undefined, call, owners)
}

const find = (id: string, call: Call, { jobs }: Pick<Owners, 'jobs'>): Promise<JobRecord | undefined> =>
  jobs.find(call.caller.organizationId, id)

async function followOrganization(call: Call, owners: EventOwners): Promise<void> {
  const wanted = typesWanted(call.query.get('types') ?? undefined)
  const { organizationId } = call.caller
  const { jobs, executions } = owners
  const from = await beginning(call, owners)
  const bell = openBell()
  const stops = [jobs.followOrganization(organizationId, bell.ring), executions.follow(organizationId, bell.ring)]
  const stream = new EventStream(call)
  void stream.over.then(bell.ring)
  try {
    const open = await Promise.all(
      (['processing', 'pending'] as const).map(status =>
        jobs.list(organizationId, { status, kind: 'async', limit: mostShown }),
      ),
    )
    const shown = open.flatMap(page => page.jobs).slice(0, mostShown)
    const more = open.some(({ next }) => next !== null) || open.flatMap(page => page.jobs).length > mostShown
    const going = await Promise.all(
      (['running', 'pending'] as const).map(status => executions.list(organizationId, { status, limit: mostShown })),
    )
    const executed = JSON.stringify(going.flatMap(page => page.executions.map(executionSummary)).slice(0, mostShown))
    const listed = shown.map(job => summaryText(job, owners)).join(',')
    stream.send(snapshot(from, `{"jobs":[${listed}],"executions":${executed},"has_more":${more}}`))
    await follow({
      call,
      stream,
      from,
      page: sequence => executions.events.ofOrganization(organizationId, { sequence, limit: pageSize }),
      heard: bell.heard,
      async take(event) {
        const records = [
          await jobRecordOf(event, wanted, call, owners),
          await executionRecordOf(event, wanted, call, owners),
        ]
        const told = records.filter(one => one !== undefined)
        // Of two with one id the second has it: who goes on behind it has had both.
        for (const [at, { id, ...one }] of told.entries())
          stream.send(at < told.length - 1 || id === undefined ? one : { ...one, id })
        return true
      },
      idle: () => Promise.resolve(true),
    })
  } finally {
    for (const stop of stops) stop()
    stream.end()
  }
}

const resuming =
  'Server-sent events. The first is `snapshot`; each of the others has an id, and a reader that sends the last one that it had as `Last-Event-ID` or `?after=` goes on behind it, for 24 hours. A token that is revoked, expires or loses the scope ends the stream within 2 s: the last event is `error`, with the code `invalid_api_key` or `insufficient_scope`. '

export const eventRoutes = (owners: EventOwners) => [
  route({
    method: 'GET',
    path: '/api/jobs/:id/events',
    scope: 'user:read',
    tag,
    summary: 'Follow a job until its end',
    description: `${resuming}Its progress comes as \`job.progress\`, without an id. The stream ends behind the event that tells of the job's end.`,
    params: z.object({ id: z.string() }),
    query: z.object({ after: z.string().optional() }),
    answer: call => followJob(call, owners),
  }),
  route({
    method: 'GET',
    path: '/api/events',
    scope: 'user:read',
    tag,
    summary: 'Follow all jobs and executions of the organization',
    description: `${resuming}\`?types=job.completed,job.failed\` leaves out what is not named; \`job.*\` is every type of jobs, \`workflow_execution.*\` every one of executions and their nodes.`,
    query: z.object({ types: z.string().optional(), after: z.string().optional() }),
    answer: call => followOrganization(call, owners),
  }),
]
