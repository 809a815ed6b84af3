import { z } from 'zod'
import { optionalString, string } from '../../../core/schemas/fields.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { beginning, follow, openChangeFlag, pageSize } from '../../http/answer/follow.ts'
import { type EventStream, openEventStream, resumeFrom } from '../../http/answer/sse.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import {
  callEnded,
  eventRecord,
  isLast,
  progressRecord,
  resumeText,
  sharedSnapshot,
  snapshot,
  typesWanted,
} from '../../views/job-event.ts'
import { findJob, hasEnded, summaryText } from '../../views/job-record.ts'
import { type EventPages, openEventPages } from './event-pages.ts'
import { type OrganizationSnapshots, openOrganizationSnapshots } from './organization-snapshot.ts'

const route = routeOf({ tag: 'Events' })

type JobOwners = Owners<'files' | 'jobs'>
type EventOwners = JobOwners & Owners<'executions'>

async function followJob(exchange: ClientExchange, owners: JobOwners): Promise<void> {
  const id = exchange.params.id!
  const found = await findJob(id, exchange, owners)
  const resume = resumeFrom(exchange)
  const stream = await openEventStream(exchange)
  const from = await beginning(resume, owners)
  const changes = openChangeFlag()
  const stop = owners.jobs.follow(id, changes.set)
  void stream.over.then(changes.set)
  try {
    if (found.kind === 'sync') return await followCall(found, stream, exchange, owners)
    // Read after the position in the log, so that an event in between is reported twice and never missed.
    let job: JobRecord | undefined = await find(id, exchange, owners)
    if (!job) return stream.end()
    stream.send(snapshot(from, `{"job":${summaryText(job, owners)}}`))
    let lastProgress = ''
    await follow({
      exchange,
      stream,
      from,
      page: sequence =>
        owners.jobs.events.after(exchange.caller.organizationId, { sequence, jobId: id, limit: pageSize }),
      wait: changes.wait,
      async take(event) {
        job = await find(id, exchange, owners)
        if (!job) return false
        stream.send(eventRecord(event, job, exchange, owners))
        return !isLast(event.type)
      },
      async idle() {
        job = await find(id, exchange, owners)
        // The job ended before the position from which the reader resumes, or was deleted.
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

/** Streams a synchronous call. It has no events in the log, so its end is reported by the call itself. */
async function followCall(
  job: JobRecord,
  stream: EventStream,
  exchange: ClientExchange,
  owners: Owners<'jobs'>,
): Promise<void> {
  stream.send(snapshot(0, `{"job":${summaryText(job, owners)}}`))
  if (hasEnded(job)) return
  await Promise.race([owners.jobs.calls.ended(job.organizationId, job.id), stream.over])
  if (!stream.ended) stream.send(callEnded(await findJob(job.id, exchange, owners)))
}

const find = (id: string, exchange: ClientExchange, { jobs }: Owners<'jobs'>): Promise<JobRecord | undefined> =>
  jobs.find(exchange.caller.organizationId, id)

/** State that readers of the same organization share. */
interface Shared {
  snapshotOf: OrganizationSnapshots
  pages: EventPages
}

async function followOrganization(
  exchange: ClientExchange,
  { jobs, executions }: EventOwners,
  { snapshotOf, pages }: Shared,
): Promise<void> {
  const types = exchange.query.get('types') ?? undefined
  typesWanted(types)
  const { organizationId } = exchange.caller
  const resume = resumeFrom(exchange)
  const stream = await openEventStream(exchange)
  const changes = openChangeFlag()
  const stops = [jobs.followOrganization(organizationId, changes.set), executions.follow(organizationId, changes.set)]
  void stream.over.then(changes.set)
  try {
    const { sequence: last, end } = await snapshotOf(organizationId, {
      resume,
      manyReaders: exchange.streams.manyReaders,
    })
    let sequence = Math.min(resume ?? last, last)
    stream.sendShared(sharedSnapshot(sequence, end))
    for (;;) {
      await stream.caughtUp()
      if (stream.ended) return
      const page = await pages.next(exchange, sequence, types)
      if (page) {
        stream.sendEvents(page.bytes)
        ;({ sequence } = page)
      } else await changes.wait()
      await exchange.streams.beforeWrite()
    }
  } finally {
    for (const stop of stops) stop()
    stream.end()
  }
}

const resuming =
  'The answer is a stream of server-sent events. The first event is `snapshot`. The others have an id: send the last one as `Last-Event-ID` or `?after=` to continue after it, within 24 hours. Above `limits.streams_per_token` or `limits.streams_per_organization` a stream is refused with 429. If the token is revoked, expires or loses the scope, the stream ends within 2 s with an `error` event, whose code is `invalid_api_key` or `insufficient_scope`.'

const sharedBy = (owners: EventOwners): Shared => ({
  snapshotOf: openOrganizationSnapshots(owners),
  pages: openEventPages(owners),
})

export const eventRoutes = (owners: EventOwners, shared = sharedBy(owners)) => [
  route('GET /api/jobs/:id/events', 'user:read', {
    eventStream: true,
    summary: 'Stream events of job',
    description: `${resuming} Progress comes as \`job.progress\`, without an id. The stream ends after the event of the end of the job.`,
    events: 'JobEvent',
    errorCodes: ['not_found', 'output_expired'],
    params: z.object({ id: string('Id of the job: `job_…`.') }),
    query: z.strictObject({ after: optionalString(resumeText) }),
    answer: exchange => followJob(exchange, owners),
  }),
  route('GET /api/events', 'user:read', {
    eventStream: true,
    summary: 'Stream events of organization',
    description: `${resuming} The stream has the events of the organization, such as \`token.revoked\`, and of all its jobs and executions, and does not end. The snapshot has the newest 50 jobs and executions that have not ended; with \`has_more\` there may be more jobs: list them with \`GET /api/jobs\`. With \`?types=job.completed,job.failed\` only these types are sent; \`job.*\` stands for all events of jobs, \`workflow_execution.*\` for all of executions and their nodes.`,
    events: 'OrganizationEvent',
    query: z.strictObject({
      types: optionalString(
        'Event types to send, separated by commas; `job.*` stands for all that begin so. Default: all.',
      ),
      after: optionalString(resumeText),
    }),
    answer: exchange => followOrganization(exchange, owners, shared),
  }),
]
