import { z } from 'zod'
import type { JobRecord } from '../../core/store/store.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { type EventStream, openEventStream } from '../sse.ts'
import { type EventPages, openEventPages } from './event-pages.ts'
import { beginning, follow, openChangeFlag, pageSize } from './follow.ts'
import {
  callEnded,
  eventRecord,
  isLast,
  progressRecord,
  resumeFrom,
  sharedSnapshot,
  snapshot,
  typesWanted,
} from './job-event.ts'
import { findJob, hasEnded, summaryText } from './job-record.ts'
import { type OrganizationSnapshots, openOrganizationSnapshots } from './organization-snapshot.ts'

const tag = 'Events'

type JobOwners = Pick<Owners, 'files' | 'jobs'>
type EventOwners = JobOwners & Pick<Owners, 'executions'>

async function followJob(call: Call, owners: JobOwners): Promise<void> {
  const id = call.params.id!
  const found = await findJob(id, call, owners)
  const resume = resumeFrom(call)
  const stream = await openEventStream(call)
  const from = await beginning(resume, owners)
  const bell = openChangeFlag()
  const stop = owners.jobs.follow(id, bell.ring)
  void stream.over.then(bell.ring)
  try {
    if (found.kind === 'sync') return await followCall(found, stream, call, owners)
    // Read after the place in the log: what happens in between is told twice rather than not at all.
    let job: JobRecord | undefined = await find(id, call, owners)
    if (!job) return stream.end()
    stream.send(snapshot(from, `{"job":${summaryText(job, owners)}}`))
    let lastProgress = ''
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
        if (progress && text !== lastProgress) stream.send(progress)
        lastProgress = text
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

const find = (id: string, call: Call, { jobs }: Pick<Owners, 'jobs'>): Promise<JobRecord | undefined> =>
  jobs.find(call.caller.organizationId, id)

/** What readers of the same organization share. */
interface Shared {
  snapshotOf: OrganizationSnapshots
  pages: EventPages
}

async function followOrganization(
  call: Call,
  { jobs, executions }: EventOwners,
  { snapshotOf, pages }: Shared,
): Promise<void> {
  const types = call.query.get('types') ?? undefined
  typesWanted(types)
  const { organizationId } = call.caller
  const resume = resumeFrom(call)
  const stream = await openEventStream(call)
  const bell = openChangeFlag()
  const stops = [jobs.followOrganization(organizationId, bell.ring), executions.follow(organizationId, bell.ring)]
  void stream.over.then(bell.ring)
  try {
    const { sequence: last, end } = await snapshotOf(organizationId, { resume, manyReaders: call.streams.manyReaders })
    let sequence = Math.min(resume ?? last, last)
    stream.sendShared(sharedSnapshot(sequence, end))
    for (;;) {
      await stream.caughtUp()
      if (stream.ended) return
      const page = await pages.next(call, sequence, types)
      if (page) {
        stream.sendEvents(page.bytes)
        ;({ sequence } = page)
      } else await bell.heard()
      await call.streams.beforeWrite()
    }
  } finally {
    for (const stop of stops) stop()
    stream.end()
  }
}

const resuming =
  'Server-sent events. The first is `snapshot`; each of the others has an id, and a reader that sends the last one that it had as `Last-Event-ID` or `?after=` goes on behind it, for 24 hours. Above `limits.streams_per_token` or `limits.streams_per_organization` a stream is refused with 429. A token that is revoked, expires or loses the scope ends the stream within 2 s: the last event is `error`, with the code `invalid_api_key` or `insufficient_scope`. '

const sharedBy = (owners: EventOwners): Shared => ({
  snapshotOf: openOrganizationSnapshots(owners),
  pages: openEventPages(owners),
})

export const eventRoutes = (owners: EventOwners, shared = sharedBy(owners)) => [
  route({
    method: 'GET',
    path: '/api/jobs/:id/events',
    eventStream: true,
    scope: 'user:read',
    tag,
    summary: 'Follow a job until its end',
    description: `${resuming}Its progress comes as \`job.progress\`, without an id. The stream ends behind the event that tells of the job's end.`,
    params: z.object({ id: z.string() }),
    query: z.strictObject({ after: z.string().optional() }),
    answer: call => followJob(call, owners),
  }),
  route({
    method: 'GET',
    path: '/api/events',
    eventStream: true,
    scope: 'user:read',
    tag,
    summary: 'Follow all jobs and executions of the organization',
    description: `${resuming}The snapshot lists the newest 50 unfinished jobs and executions; \`has_more\` says that there may be more jobs: list them with \`GET /api/jobs\`. \`?types=job.completed,job.failed\` leaves out what is not named; \`job.*\` is every type of jobs, \`workflow_execution.*\` every one of executions and their nodes.`,
    query: z.strictObject({ types: z.string().optional(), after: z.string().optional() }),
    answer: call => followOrganization(call, owners, shared),
  }),
]
