import { z } from 'zod'
import { Task } from '../../core/schemas/task.ts'
import { jobStatuses } from '../../core/store/store.ts'
import type { Owners } from '../owners.ts'
import { JsonText, route } from '../route.ts'
import { isJobId, JobSummary, summaryText } from './job-record.ts'

const when = z.coerce.number().int().min(0).optional()

const Query = z.strictObject({
  status: z.enum(jobStatuses).optional(),
  task: Task.optional(),
  model_id: z.string().max(128).optional(),
  kind: z
    .enum(['async', 'sync'])
    .optional()
    .describe('`async`: jobs that were submitted; `sync`: synchronous requests.'),
  created_after: when.describe('Unix seconds; those of that second are left out.'),
  created_before: when.describe('Unix seconds; those of that second are left out.'),
  metadata: z
    .record(z.string(), z.string())
    .optional()
    .describe('`?metadata[ref]=42`: only those with exactly this value under this name.'),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  after: z
    .string()
    .refine(isJobId, 'This is no cursor of the list.')
    .optional()
    .describe('`next_cursor` of the page before, or the id of its last job.'),
})

const Page = z
  .object({ jobs: z.array(JobSummary), has_more: z.boolean(), next_cursor: z.string().nullable() })
  .meta({ id: 'JobPage' })

export const listRoute = (owners: Pick<Owners, 'jobs'>) =>
  route({
    method: 'GET',
    path: '/api/jobs',
    scope: 'user:read',
    tag: 'Jobs',
    summary: 'List jobs, newest first',
    description:
      'Without inputs and results. A synchronous call is listed once it has ended. A page may hold fewer than `limit` although `has_more` is true: go on from `next_cursor`.',
    query: Query,
    response: Page,
    handle: async ({ query }, call) => {
      const { jobs, next } = await owners.jobs.list(call.caller.organizationId, {
        limit: query.limit,
        ...(query.after === undefined ? {} : { after: query.after }),
        ...(query.status === undefined ? {} : { status: query.status }),
        ...(query.task === undefined ? {} : { task: query.task }),
        ...(query.model_id === undefined ? {} : { modelId: query.model_id }),
        ...(query.kind === undefined ? {} : { kind: query.kind }),
        // The whole second is left out, and not what is left of it.
        ...(query.created_after === undefined ? {} : { createdAfter: query.created_after * 1000 + 999 }),
        ...(query.created_before === undefined ? {} : { createdBefore: query.created_before * 1000 }),
        ...(query.metadata === undefined ? {} : { metadata: query.metadata }),
      })
      const listed = jobs.map(job => summaryText(job, owners)).join(',')
      return new JsonText(`{"jobs":[${listed}],"has_more":${next !== null},"next_cursor":${JSON.stringify(next)}}`)
    },
  })
