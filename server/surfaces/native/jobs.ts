import { z } from 'zod'
import { canonicalHash } from '../../../core/canonical.ts'
import { Failure } from '../../../core/failure.ts'
import { array, namedObject, oneOf, string } from '../../../core/schemas/fields.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { logLevels } from '../../../core/schemas/log-level.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { taskRecord } from '../../../core/tasks/registry.ts'
import { alwaysTrue, deletedAnswer, deletedObject } from '../../http/answer/page.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { queryOf } from '../../http/request/query.ts'
import { askForRegion } from '../../http/request/region.ts'
import { routeOf } from '../../http/request/route.ts'
import { findJob, hasEnded, isJobId, JobCreated, JobObject, jobAnswer } from '../../views/job-record.ts'
import { type JobTerms, submissionAnswer } from '../../work/submit.ts'
import { type SubmitterOwners, submitters } from '../../work/submitters.ts'
import { unfinishedImage } from '../../work/unfinished-image.ts'
import { createRoute } from './job-create.ts'
import { listRoute } from './job-list.ts'

/** Returns the terms of a job: its request without the inputs. */
const termsOf = (job: JobRecord): JobTerms => ({
  priority: job.priority,
  maxAttempts: job.maxAttempts,
  startTimeoutMs: job.startBy === null ? undefined : job.startBy - job.createdAt,
  timeoutMs: job.timeoutMs ?? undefined,
  // 0 keeps the job without a limit.
  retentionMs: job.retentionMs ?? 0,
  metadata: job.metadata === null ? undefined : (JSON.parse(job.metadata) as object),
  webhook: job.webhook ?? undefined,
})

/** Submits a job again as a new job. Throws Failure `conflict` if it cannot be repeated, and as a submission does. */
async function retryJob(job: JobRecord, exchange: ClientExchange, owners: SubmitterOwners) {
  if (job.kind === 'sync')
    throw new Failure(
      'conflict',
      `The job ${job.id} was a synchronous request, whose inputs are not stored. Send the request again.`,
    )
  if (!hasEnded(job))
    throw new Failure('conflict', `The job ${job.id} has not ended: it is ${job.status}. Wait for it, or cancel it.`)
  if (job.parent)
    throw new Failure(
      'conflict',
      `The job ${job.id} belongs to the node '${job.parent.nodeId}' of an execution. Retry the execution: POST /api/workflow-executions/${job.parent.executionId}/retry.`,
    )
  askForRegion(exchange, job.region ?? undefined)
  // An idempotency key stands for this body: the same key for another job is another request.
  const body = { retry: job.id }
  exchange.bodyHash = canonicalHash(body)
  return submitters[taskRecord(job.task).runner].repeat(exchange, job, { terms: termsOf(job), body }, owners)
}

const route = routeOf({ tag: 'Jobs' })
const One = z.object({ id: string('Id of the job: `job_…`.') })
const ofJob = { params: One, errorCodes: ['not_found', 'output_expired'] } as const

const PreviewQuery = z.strictObject({
  image: z.coerce.number().int().min(0).max(15).default(0).describe('Position of the image in the request, from 0.'),
})

/** The newest unfinished image of a job that runs. */
const previewRoute = (owners: Owners<'cpu' | 'files' | 'jobs' | 'log'>) =>
  route('GET /api/jobs/:id/preview', 'user:read', {
    summary: 'Get preview of job',
    description:
      'Returns the newest unfinished image of a job that runs, as WebP: of a video, one frame. The request must have `previews`, and the engine must be able to. `previews` of the job counts them.',
    ...ofJob,
    query: PreviewQuery,
    media: ['image/webp'],
    otherAnswers: {
      204: { description: 'There is none now: it has not begun, has ended, or none was requested. There is no body.' },
    },
    async answer(exchange) {
      const job = await findJob(exchange.params['id'] ?? '', exchange, owners)
      const query = parsed(PreviewQuery, queryOf(exchange))
      const preview = owners.jobs.previewsOf(job.id).findLast(({ image }) => image === query.image)
      const bytes = preview && (await unfinishedImage(job, preview, { format: 'webp', quality: 80 }, owners))
      // Not an error: a client that shows a job asks again and again, and browsers log every 404.
      if (!bytes) {
        exchange.head(204, 'image/webp', ['cache-control', 'no-store'])
        exchange.res.end()
        return
      }
      exchange.send(200, bytes, 'image/webp', ['cache-control', 'no-store'])
    },
  })

const Deleted = deletedObject('JobDeleted', 'Confirms that a job was deleted.', ['job', 'job'], alwaysTrue)

const Logs = namedObject('JobLogs', 'The log of a job.', {
  logs: array(
    'The lines, oldest first.',
    z.object({
      timestamp: z.iso.datetime().describe('ISO 8601, UTC.'),
      level: oneOf('Level of the line.', logLevels),
      message: string('Text of the line.'),
      source: z.literal('USER'),
    }),
  ),
})

const notDeletable = ({ id }: JobRecord) =>
  new Failure(
    'conflict',
    `The job ${id} is a synchronous request. Only its usage record is stored, and that cannot be deleted.`,
  )

/**
 * Resolves when the job has ended, the server drains, or the time is over. Throws Failure `cancelled` if the client
 * disconnected, and the failure of its token if that may no longer read the job.
 */
async function waitFor(job: JobRecord, waitMs: number, exchange: ClientExchange, { jobs }: Owners<'jobs'>) {
  // A synchronous call is not in the store, so `jobs.wait` does not report its end.
  const callEnded = jobs.calls.ended(job.organizationId, job.id)
  const stopped = new AbortController()
  const unwatch = exchange.access.watch(exchange, failure => exchange.stop(failure))
  const ended = jobs.wait(
    job.id,
    AbortSignal.any([exchange.signal, AbortSignal.timeout(waitMs), stopped.signal]),
    job.organizationId,
  )
  try {
    // The job may have ended between the caller's read and this wait.
    const now = await jobs.find(job.organizationId, job.id)
    if (!now || !hasEnded(now)) await Promise.race([ended, ...(callEnded ? [callEnded] : [])])
  } finally {
    unwatch()
    stopped.abort()
  }
  exchange.signal.throwIfAborted()
}

export const jobRoutes = (owners: SubmitterOwners & Owners<'executions' | 'organizations'>) => [
  createRoute(owners),
  listRoute(owners),
  previewRoute(owners),
  route('GET /api/jobs/:id', 'user:read', {
    summary: 'Get job',
    description:
      'Returns a job with its inputs and its result. With `?wait=30` the answer comes when the job has ended, or after 30 s. If the token is revoked, expires or loses the scope meanwhile, the answer is 401 or 403 within 2 s. Addresses of files in the result work for a day: read the job again for new ones.',
    ...ofJob,
    query: z.strictObject({
      wait: z.coerce.number().min(0).max(120).default(0).describe('Seconds to wait for the end, 120 at most.'),
    }),
    response: JobObject,
    handle: async ({ params, query }, exchange) => {
      let job = await findJob(params.id, exchange, owners)
      if (query.wait > 0 && !hasEnded(job)) {
        await waitFor(job, Math.ceil(query.wait * 1000), exchange, owners)
        job = await findJob(params.id, exchange, owners)
      }
      if (!hasEnded(job)) exchange.pollAgain()
      return jobAnswer(job, exchange, owners)
    },
  }),
  route('DELETE /api/jobs/:id', 'user:write', {
    summary: 'Delete job',
    description:
      'Deletes a job with its files. A job that has not ended is cancelled first. The record of its cost stays.',
    errorCodes: ['not_found', 'output_expired', 'conflict'],
    params: One,
    response: Deleted,
    handle: async ({ params: { id } }, exchange) => {
      const removed = isJobId(id) && (await owners.jobs.remove(exchange.caller.organizationId, id))
      if (!removed) throw notDeletable(await findJob(id, exchange, owners))
      return deletedAnswer('job', id)
    },
  }),
  route('POST /api/jobs/:id/cancel', 'user:write', {
    bucket: 'api',
    summary: 'Cancel job',
    description:
      'Cancels a job that waits or runs; its engine stops at once. A job that is already cancelled is returned as it is.',
    errorCodes: ['not_found', 'output_expired', 'job_already_finished'],
    params: One,
    response: JobObject,
    handle: async ({ params: { id } }, exchange) => {
      // Calls first: one that is removed from memory meanwhile is in the store.
      const { jobs } = owners
      const { organizationId } = exchange.caller
      const job = isJobId(id)
        ? ((await jobs.calls.cancel(organizationId, id)) ?? (await jobs.cancel(organizationId, id)))
        : undefined
      return jobAnswer(job ?? (await findJob(id, exchange, owners)), exchange, owners)
    },
  }),
  route('POST /api/jobs/:id/retry', 'user:write', {
    bucket: 'jobs',
    summary: 'Retry job',
    description:
      'Creates a new job with the inputs and options of one that has ended. Start time and start timeout are counted from now.',
    errorCodes: [...errorGroups.submit, 'not_found', 'output_expired'],
    params: One,
    response: JobCreated,
    status: 202,
    handle: async ({ params }, exchange) =>
      submissionAnswer(await retryJob(await findJob(params.id, exchange, owners), exchange, owners)),
  }),
  route('GET /api/jobs/:id/logs', 'user:read', {
    summary: 'List log lines of job',
    description:
      'Returns what engines logged while they ran the job, oldest first; also while it runs. A synchronous request has no log.',
    ...ofJob,
    response: Logs,
    handle: async ({ params }, exchange) => {
      const job = await findJob(params.id, exchange, owners)
      const lines = job.kind === 'sync' ? [] : await owners.jobs.logs(job)
      return {
        logs: lines.map(({ at, level, message }) => ({
          timestamp: new Date(at).toISOString(),
          level,
          message,
          source: 'USER' as const,
        })),
      }
    },
  }),
]
