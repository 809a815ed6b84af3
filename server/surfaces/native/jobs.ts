import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { boolean, string } from '../../../core/schemas/fields.ts'
import { logLevels } from '../../../core/schemas/log-level.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import type { Call } from '../../http/request/call.ts'
import { errorGroups } from '../../http/request/error-groups.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { JobCreated } from '../../views/job-created.ts'
import { findJob, hasEnded, isJobId, JobObject, jobAnswer } from '../../views/job-record.ts'
import { submissionAnswer } from '../../work/submit.ts'
import type { SubmitterOwners } from '../../work/submitters.ts'
import { createRoute } from './job-create.ts'
import { listRoute } from './job-list.ts'
import { previewRoute } from './job-preview.ts'
import { retryJob } from './job-retry.ts'

const route = routeOf({ tag: 'Jobs' })
const One = z.object({ id: string('Id of the job: `job_…`.') })

const Deleted = z
  .object({
    id: string('Id of the job.'),
    object: z.literal('job'),
    deleted: boolean('Always true.'),
  })
  .meta({ id: 'JobDeleted', description: 'Confirms that a job was deleted.' })

const Logs = z
  .object({
    logs: z
      .array(
        z.object({
          timestamp: z.iso.datetime().describe('ISO 8601, UTC.'),
          level: z.enum(logLevels).describe('Level of the line.'),
          message: string('Text of the line.'),
          source: z.literal('USER'),
        }),
      )
      .describe('The lines, oldest first.'),
  })
  .meta({ id: 'JobLogs', description: 'The log of a job.' })

const notDeletable = ({ id }: JobRecord) =>
  new Failure(
    'conflict',
    `The job ${id} is a synchronous request. Only its usage record is stored, and that cannot be deleted.`,
  )

/**
 * Resolves when the job has ended, the server drains, or the time is over. Throws Failure `cancelled` if the client
 * disconnected, and the failure of its token if that may no longer read the job.
 */
async function waitFor(job: JobRecord, waitMs: number, call: Call, { jobs }: Pick<Owners, 'jobs'>): Promise<void> {
  // A synchronous call is not in the store, so `jobs.wait` does not report its end.
  const callEnded = jobs.calls.ended(job.organizationId, job.id)
  const stopped = new AbortController()
  const unwatch = call.access.watch(call, failure => call.stop(failure))
  const ended = jobs.wait(job.id, AbortSignal.any([call.signal, AbortSignal.timeout(waitMs), stopped.signal]))
  try {
    // The job may have ended between the caller's read and this wait.
    const now = await jobs.find(job.organizationId, job.id)
    if (!now || !hasEnded(now)) await Promise.race([ended, ...(callEnded ? [callEnded] : [])])
  } finally {
    unwatch()
    stopped.abort()
  }
  call.signal.throwIfAborted()
}

/** The routes of durable jobs. */
export const jobRoutes = (owners: SubmitterOwners) => [
  createRoute(owners),
  listRoute(owners),
  previewRoute(owners),
  route('GET /api/jobs/:id', 'user:read', {
    summary: 'Get job',
    description:
      'Returns a job with its inputs and its result. With `?wait=30` the answer comes when the job has ended, or after 30 s. If the token is revoked, expires or loses the scope meanwhile, the answer is 401 or 403 within 2 s. Addresses of files in the result work for a day: read the job again for new ones.',
    errorCodes: ['not_found', 'output_expired'],
    params: One,
    query: z.strictObject({
      wait: z.coerce.number().min(0).max(120).default(0).describe('Seconds to wait for the end, 120 at most.'),
    }),
    response: JobObject,
    handle: async ({ params, query }, call) => {
      let job = await findJob(params.id, call, owners)
      if (query.wait > 0 && !hasEnded(job)) {
        await waitFor(job, Math.ceil(query.wait * 1000), call, owners)
        job = await findJob(params.id, call, owners)
      }
      if (!hasEnded(job))
        call.header('retry-after', '2').header('retry-after-ms', '2000').header('openai-poll-after-ms', '2000')
      return jobAnswer(job, call, owners)
    },
  }),
  route('DELETE /api/jobs/:id', 'user:write', {
    summary: 'Delete job',
    description:
      'Deletes a job with its files. A job that has not ended is cancelled first. The record of its cost stays.',
    errorCodes: ['not_found', 'output_expired', 'conflict'],
    params: One,
    response: Deleted,
    handle: async ({ params: { id } }, call) => {
      const removed = isJobId(id) && (await owners.jobs.remove(call.caller.organizationId, id))
      if (!removed) throw notDeletable(await findJob(id, call, owners))
      return { id, object: 'job' as const, deleted: true }
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
    handle: async ({ params: { id } }, call) => {
      // Calls first: one that is removed from memory meanwhile is in the store.
      const { jobs } = owners
      const { organizationId } = call.caller
      const job = isJobId(id)
        ? ((await jobs.calls.cancel(organizationId, id)) ?? (await jobs.cancel(organizationId, id)))
        : undefined
      return jobAnswer(job ?? (await findJob(id, call, owners)), call, owners)
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
    handle: async ({ params }, call) =>
      submissionAnswer(await retryJob(await findJob(params.id, call, owners), call, owners)),
  }),
  route('GET /api/jobs/:id/logs', 'user:read', {
    summary: 'List log lines of job',
    description:
      'Returns what engines logged while they ran the job, oldest first; also while it runs. A synchronous request has no log.',
    errorCodes: ['not_found', 'output_expired'],
    params: One,
    response: Logs,
    handle: async ({ params }, call) => {
      const job = await findJob(params.id, call, owners)
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
