import { z } from 'zod'
import { Task } from '../../../core/schemas/task.ts'
import { jobStatuses } from '../../../core/store/store.ts'
import { pageFields, pageLimit } from '../../http/answer/page.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { isJobId, JobSummary, summaryText } from '../../views/job-record.ts'

const route = routeOf({ tag: 'Jobs' })

const when = z.coerce.number().int().min(0).optional()

const Query = z.strictObject({
  status: z.enum(jobStatuses).optional().describe('Only jobs with this status.'),
  task: Task.optional().describe('Only jobs of this task.'),
  model_id: z.string().max(128).optional().describe('Only jobs of this model.'),
  user_id: z.string().max(64).optional().describe('Only jobs of the tokens of this user.'),
  token_id: z.string().max(64).optional().describe('Only jobs that this token created.'),
  kind: z
    .enum(['async', 'sync'])
    .optional()
    .describe('`async`: background jobs. `sync`: synchronous requests. Default: both.'),
  created_after: when.describe('Only jobs created after this second, in Unix seconds.'),
  created_before: when.describe('Only jobs created before this second, in Unix seconds.'),
  metadata: z
    .record(z.string(), z.string())
    .optional()
    .describe('`?metadata[ref]=42`: only jobs with exactly this value under this name.'),
  limit: pageLimit,
  after: z
    .string()
    .refine(isJobId, 'This is no cursor of the list.')
    .optional()
    .describe('`next_cursor` of the page before, or the id of its last job. Default: the first page.'),
})

const Page = z
  .object({ jobs: z.array(JobSummary).describe('The jobs, newest first.'), ...pageFields })
  .meta({ id: 'JobPage', description: 'A page of jobs.' })

export const listRoute = (owners: Pick<Owners, 'jobs'>) =>
  route('GET /api/jobs', 'user:read', {
    summary: 'List jobs',
    description:
      'Returns jobs of the organization, newest first, without inputs and results. A synchronous request is listed once it has ended. A page may have fewer than `limit` entries although `has_more` is true: continue with `next_cursor`.',
    query: Query,
    response: Page,
    handle: async ({ query }, call) => {
      const { jobs, next } = await owners.jobs.list(call.caller.organizationId, {
        limit: query.limit,
        ...(query.after === undefined ? {} : { after: query.after }),
        ...(query.status === undefined ? {} : { status: query.status }),
        ...(query.task === undefined ? {} : { task: query.task }),
        ...(query.model_id === undefined ? {} : { modelId: query.model_id }),
        ...(query.user_id === undefined ? {} : { userId: query.user_id }),
        ...(query.token_id === undefined ? {} : { tokenId: query.token_id }),
        ...(query.kind === undefined ? {} : { kind: query.kind }),
        // Excludes the whole second.
        ...(query.created_after === undefined ? {} : { createdAfter: query.created_after * 1000 + 999 }),
        ...(query.created_before === undefined ? {} : { createdBefore: query.created_before * 1000 }),
        ...(query.metadata === undefined ? {} : { metadata: query.metadata }),
      })
      const listed = jobs.map(job => summaryText(job, owners)).join(',')
      return new JsonText(`{"jobs":[${listed}],"has_more":${next !== null},"next_cursor":${JSON.stringify(next)}}`)
    },
  })
