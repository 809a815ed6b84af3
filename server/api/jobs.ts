import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { logLevels } from '../../core/schemas/log-level.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { submissionAnswer } from '../submit.ts'
import { Created, createRoute } from './job-create.ts'
import { listRoute } from './job-list.ts'
import { findJob, hasEnded, isJobId, JobObject, jobAnswer } from './job-record.ts'
import { retryJob } from './job-retry.ts'
import type { SubmitterOwners } from './submitters.ts'

const tag = 'Jobs'
const One = z.object({ id: z.string() })

const Deleted = z.object({ id: z.string(), object: z.literal('job'), deleted: z.boolean() }).meta({ id: 'JobDeleted' })

const Logs = z
  .object({
    logs: z.array(
      z.object({
        timestamp: z.iso.datetime(),
        level: z.enum(logLevels),
        message: z.string(),
        source: z.literal('USER'),
      }),
    ),
  })
  .meta({ id: 'JobLogs' })

/** What there is but not in the store's queue. */
const notDeletable = ({ id }: JobRecord) =>
  new Failure('conflict', `The job ${id} is a synchronous call: only its bill is kept, and that is not deleted.`)

/**
 * Resolves when the job has ended, the server drains, or the time is over. Throws Failure `cancelled` when the client has
 * disconnected, and the failure of its token when that may no longer read the job.
 */
async function waitFor(job: JobRecord, waitMs: number, call: Call, { jobs }: Pick<Owners, 'jobs'>): Promise<void> {
  // A synchronous call is not in the store, which does not tell its end.
  const callEnded = jobs.calls.ended(job.organizationId, job.id)
  const left = new AbortController()
  const unwatch = call.access.watch(call, failure => call.stop(failure))
  const ended = jobs.wait(job.id, AbortSignal.any([call.signal, AbortSignal.timeout(waitMs), left.signal]))
  try {
    // It may have ended between the look of the caller and the wait.
    const now = await jobs.find(job.organizationId, job.id)
    if (!now || !hasEnded(now)) await Promise.race([ended, ...(callEnded ? [callEnded] : [])])
  } finally {
    unwatch()
    left.abort()
  }
  call.signal.throwIfAborted()
}

/** Durable jobs: an id that was answered survives the server. */
export const jobRoutes = (owners: SubmitterOwners) => [
  createRoute(owners),
  listRoute(owners),
  route({
    method: 'GET',
    path: '/api/jobs/:id',
    scope: 'user:read',
    tag,
    summary: 'Look a job up, or wait for its end',
    description:
      'With `?wait=30` the answer comes when the job has ended, or after that many seconds. A token that is revoked, expires or loses the scope meanwhile gets 401 or 403 within 2 s. Addresses of files in the result work for a day; look again for new ones.',
    params: One,
    query: z.strictObject({ wait: z.coerce.number().min(0).max(120).default(0) }),
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
  route({
    method: 'DELETE',
    path: '/api/jobs/:id',
    scope: 'user:write',
    tag,
    summary: 'Delete a job that has ended, with its files',
    description: 'What it cost stays on the bill. A job that has not ended is cancelled first.',
    params: One,
    response: Deleted,
    handle: async ({ params: { id } }, call) => {
      const removed = isJobId(id) && (await owners.jobs.remove(call.caller.organizationId, id))
      if (!removed) throw notDeletable(await findJob(id, call, owners))
      return { id, object: 'job' as const, deleted: true }
    },
  }),
  route({
    method: 'POST',
    path: '/api/jobs/:id/cancel',
    scope: 'user:write',
    bucket: 'api',
    tag,
    summary: 'Cancel a job; its engine is told at once',
    params: One,
    response: JobObject,
    handle: async ({ params: { id } }, call) => {
      // The calls first: one that leaves the memory meanwhile is in the store.
      const { jobs } = owners
      const { organizationId } = call.caller
      const job = isJobId(id)
        ? ((await jobs.calls.cancel(organizationId, id)) ?? (await jobs.cancel(organizationId, id)))
        : undefined
      return jobAnswer(job ?? (await findJob(id, call, owners)), call, owners)
    },
  }),
  route({
    method: 'POST',
    path: '/api/jobs/:id/retry',
    scope: 'user:write',
    bucket: 'jobs',
    tag,
    summary: 'Submit a job that has ended once more, as a new job',
    description: 'With the same inputs and the same terms; its time to begin and its start timeout count anew.',
    params: One,
    response: Created,
    status: 202,
    handle: async ({ params }, call) =>
      submissionAnswer(await retryJob(await findJob(params.id, call, owners), call, owners)),
  }),
  route({
    method: 'GET',
    path: '/api/jobs/:id/logs',
    scope: 'user:read',
    tag,
    summary: 'What the runs of a job have said',
    description: 'Oldest first; those of a run that is under way too. A synchronous call says nothing.',
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
