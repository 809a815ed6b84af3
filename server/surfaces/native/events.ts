import { z } from 'zod'
import { optionalString, string } from '../../../core/schemas/fields.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import type { ExecutionNode, ExecutionRecord } from '../../../core/store/workflows.ts'
import { openChangeFlag, pageSize, streamEvents } from '../../http/answer/follow.ts'
import { openEventStream, resumeFrom } from '../../http/answer/sse.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { isLastOfExecution, recordOf } from '../../views/execution-event.ts'
import { progressOfNodes, shownNode } from '../../views/execution-nodes.ts'
import { findExecution, shownExecution } from '../../views/execution-record.ts'
import {
  callEnded,
  eventRecord,
  isLast,
  progressRecord,
  record,
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
type ExecutionOwners = EventOwners & Owners<'cpu'>

async function followJob(exchange: ClientExchange, owners: JobOwners) {
  const { jobs } = owners
  const { organizationId } = exchange.caller
  const found = await findJob(exchange.params.id!, exchange, owners)
  const { id } = found
  if (found.kind === 'sync') return await followCall(found, exchange, owners)
  let lastProgress = ''
  await streamEvents(
    exchange,
    {
      follow: changed => jobs.follow(id, changed),
      async first(from) {
        const job = await jobs.find(organizationId, id)
        return job && snapshot(from, `{"job":${summaryText(job, owners)}}`)
      },
      page: sequence => jobs.events.after(organizationId, { sequence, jobId: id, limit: pageSize }),
      async take(event, stream) {
        const job = await jobs.find(organizationId, id)
        if (job) stream.send(eventRecord(event, job, exchange, owners))
        return job !== undefined && !isLast(event.type)
      },
      async idle(stream) {
        const job = await jobs.find(organizationId, id)
        // The job ended before the position from which the reader resumes, or was deleted.
        if (!job || hasEnded(job)) return false
        const progress = progressRecord(job, owners)
        const text = progress ? progress.data.slice(progress.data.indexOf('"data":')) : ''
        if (progress && text !== lastProgress) stream.send(progress)
        lastProgress = text
        return true
      },
    },
    owners,
  )
}

/** Streams a synchronous call. It has no events in the log, so its end is reported by the call itself. */
async function followCall(job: JobRecord, exchange: ClientExchange, owners: Owners<'jobs'>) {
  // A position that is no event is refused here too.
  resumeFrom(exchange)
  const stream = await openEventStream(exchange)
  try {
    stream.send(snapshot(0, `{"job":${summaryText(job, owners)}}`))
    if (hasEnded(job)) return
    await Promise.race([owners.jobs.calls.ended(job.organizationId, job.id), stream.over])
    if (!stream.ended) stream.send(callEnded(await findJob(job.id, exchange, owners)))
  } finally {
    stream.end()
  }
}

/** Returns the progress of nodes that run or wait. It is not stored, so it has no event id. */
async function progressOf(
  execution: ExecutionRecord,
  nodes: readonly ExecutionNode[],
  exchange: ClientExchange,
  owners: ExecutionOwners,
): Promise<string> {
  const progresses = await progressOfNodes(nodes, exchange, owners)
  const shown = nodes.flatMap(node => {
    const known = progresses.get(node.nodeId)
    if (!known) return []
    const { node_id, status, items, progress, queue_position, waiting_for } = shownNode(node, exchange, known)
    return { node_id, status, items, progress, queue_position, waiting_for }
  })
  return JSON.stringify({ execution_id: execution.id, progress: execution.progress, nodes: shown })
}

async function followExecution(exchange: ClientExchange, owners: ExecutionOwners) {
  const { executions, jobs } = owners
  const { organizationId } = exchange.caller
  const { id, definition } = await findExecution(exchange.params.id!, exchange, owners)
  const tasks = new Map(Object.entries(definition.dag.nodes).map(([node, { task }]) => [node, task]))
  /** Jobs whose progress is followed, with the functions that end that. */
  const followed = new Map<string, () => void>()
  let lastProgress = ''
  let wake: () => void

  function followJobs(nodes: readonly ExecutionNode[]) {
    const live = new Set(nodes.flatMap(({ status, jobId }) => (status === 'running' && jobId ? [jobId] : [])))
    for (const [job, unfollow] of followed)
      if (!live.has(job)) {
        unfollow()
        followed.delete(job)
      }
    for (const job of live) if (!followed.has(job)) followed.set(job, jobs.follow(job, wake))
  }

  await streamEvents(
    exchange,
    {
      follow(changed) {
        wake = changed
        const stop = executions.follow(id, changed)
        return () => [stop, ...followed.values()].forEach(end => end())
      },
      async first(from) {
        const execution = await findExecution(id, exchange, owners)
        const shown = await shownExecution(execution, exchange, owners, { withNodes: true })
        return snapshot(from, JSON.stringify({ execution: shown }))
      },
      page: sequence => executions.events.ofExecution(organizationId, { sequence, executionId: id, limit: pageSize }),
      async take(event, stream) {
        const eventRecord = await recordOf(event, tasks, exchange, owners)
        if (eventRecord) stream.send(eventRecord)
        return !isLastOfExecution(event.type)
      },
      async idle(stream) {
        const execution = await executions.summary(organizationId, id)
        // The execution ended before the position from which the reader resumes, or was deleted.
        if (!execution || execution.finishedAt !== null) return false
        const nodes = await executions.nodes(organizationId, id)
        followJobs(nodes)
        const progress = await progressOf(execution, nodes, exchange, owners)
        if (progress !== lastProgress)
          stream.send(record('workflow_execution.node.progress', Date.now(), undefined, progress))
        lastProgress = progress
        return true
      },
    },
    owners,
  )
}

/** State that readers of the same organization share. */
interface Shared {
  snapshotOf: OrganizationSnapshots
  pages: EventPages
}

async function followOrganization(exchange: ClientExchange, { jobs, executions }: EventOwners, shared: Shared) {
  const types = exchange.query.get('types') ?? undefined
  typesWanted(types)
  const { organizationId } = exchange.caller
  const resume = resumeFrom(exchange)
  const stream = await openEventStream(exchange)
  const changes = openChangeFlag(stream)
  const stops = [jobs.followOrganization(organizationId, changes.set), executions.follow(organizationId, changes.set)]
  try {
    const { sequence: last, end } = await shared.snapshotOf(organizationId, {
      resume,
      manyReaders: exchange.streams.manyReaders,
    })
    let sequence = Math.min(resume ?? last, last)
    stream.sendShared(sharedSnapshot(sequence, end))
    for (;;) {
      await stream.caughtUp()
      if (stream.ended) return
      const page = await shared.pages.next(exchange, sequence, types)
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

export const executionEventRoutes = (owners: ExecutionOwners) => [
  route('GET /api/workflow-executions/:id/events', 'user:read', {
    eventStream: true,
    summary: 'Stream events of execution',
    description:
      'The answer is a stream of server-sent events of an execution and its nodes, until its end. The first event is `snapshot`. The others have an id: send the last one as `Last-Event-ID` or `?after=` to continue after it, within 24 hours. If the token is revoked, expires or loses the scope, the stream ends within 2 s with an `error` event, whose code is `invalid_api_key` or `insufficient_scope`. Progress of nodes comes as `workflow_execution.node.progress`, without an id. Large results are left out: they are null in the snapshot, and absent in events. Read them with their node.',
    events: 'ExecutionEvent',
    errorCodes: ['not_found'],
    params: z.object({ id: string('Id of the execution: `exec_…`.') }),
    query: z.strictObject({ after: optionalString(resumeText) }),
    answer: exchange => followExecution(exchange, owners),
  }),
]
