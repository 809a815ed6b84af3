import { z } from 'zod'
import type { EffectiveLimits } from '../../../core/accounts/plans.ts'
import { SpendView } from '../../../core/accounts/spend-view.ts'
import { latestTime, pageBuckets, type UsageRequest } from '../../../core/accounts/usage-report.ts'
import { Failure } from '../../../core/failure.ts'
import { failureOfIssues } from '../../../core/schemas/issues.ts'
import { bucketWidths, type Organization, type UsageGroup, usageGroups } from '../../../core/store/store.ts'
import { OrganizationPath, reachOrganization } from '../../http/access/reach.ts'
import { sendCsv } from '../../http/answer/send-csv.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { queryOf } from '../../http/request/query.ts'
import { route } from '../../http/request/route.ts'

const time = z.coerce.number().int().min(0).max(latestTime).optional()
const maxValues = 100
const values = z.array(z.string().min(1).max(256)).max(maxValues).optional()
const limits = bucketWidths.map(width => `${pageBuckets[width].most} for \`${width}\``).join(', ')

const Query = z.strictObject({
  start_time: time.describe('Unix seconds. Default: the start of this month in UTC; for `1m` an hour before the end.'),
  end_time: time.describe('Unix seconds, excluded. Default: now.'),
  bucket_width: z
    .enum(bucketWidths)
    .default('1d')
    .describe('Length of a bucket, in UTC. `1m` covers at most 24 hours.'),
  group_by: z
    .array(z.enum(usageGroups))
    .max(usageGroups.length)
    .optional()
    .describe(
      'One result for each of these, also as `group_by[]` or with commas. Default: one result for each bucket.',
    ),
  models: values.describe('Only these model ids; at most 100.'),
  tasks: values.describe('Only these tasks; at most 100.'),
  token_ids: values.describe('Only these tokens; at most 100.'),
  user_ids: values.describe('Only work of tokens that belonged to these users; at most 100.'),
  limit: z.coerce.number().int().min(1).max(1440).optional().describe(`Most buckets of the page. At most ${limits}.`),
  page: z.string().max(32).optional().describe('`next_page` of the page before. Default: the first page.'),
  format: z
    .enum(['json', 'csv'])
    .default('json')
    .describe('`csv`: all buckets as rows, without pages and totals; times are ISO 8601 in UTC.'),
})

const figures = {
  requests: z.number().describe('Synchronous requests that have ended.'),
  jobs: z.number().describe('Background jobs that have ended.'),
  failed: z.number().describe('Requests and jobs that failed.'),
  input_tokens: z.number().describe('Input tokens.'),
  cached_tokens: z.number().describe('Input tokens that the engine has reused from its cache.'),
  output_tokens: z.number().describe('Output tokens.'),
  reasoning_tokens: z.number().describe('Output tokens of reasoning.'),
  images: z.number().describe('Images written.'),
  video_seconds: z.number().describe('Length of the videos written, seconds.'),
  audio_seconds: z.number().describe('Length of the audio written or transcribed, seconds.'),
  characters: z.number().describe('Characters turned into audio.'),
  documents: z.number().describe('Documents ranked and pairs scored.'),
  gpu_seconds: z.number().describe('Time on a slot × devices of the engine ÷ its slots, seconds.'),
  energy_wh: z.number().describe('Energy of the devices that report it, watt-hours.'),
  cost: z.number().describe('Cost in currency units.'),
  queue_seconds: z.number().describe('Sum of the times from creation to start, seconds.'),
  run_seconds: z.number().describe('Sum of the times from start to end, seconds.'),
}
const groups = {
  model_id: z.string().nullable().describe('Model; null if not grouped by `model_id`.'),
  task: z.string().nullable().describe('Task; null if not grouped by `task`.'),
  token_id: z.string().nullable().describe('Token; null if not grouped by `token_id`.'),
  user_id: z
    .string()
    .nullable()
    .describe('User who owned the token at the time; null for tokens of nobody, and if not grouped by `user_id`.'),
  workflow_id: z
    .string()
    .nullable()
    .describe('Stored workflow; null for other work, and if not grouped by `workflow_id`.'),
  status: z
    .enum(['completed', 'failed', 'cancelled'])
    .nullable()
    .describe('How the work has ended; null if not grouped by `status`.'),
  day: z.string().nullable().describe('Day in UTC, such as `2026-01-31`; null if not grouped by `day`.'),
}

const Usage = z
  .object({
    organization_id: z.string().describe('Id of the organization: `org_…`.'),
    start_time: z.int().describe('Start of the first bucket, Unix seconds.'),
    end_time: z.int().describe('End of the last bucket, Unix seconds, excluded.'),
    bucket_width: z.enum(bucketWidths).describe('Length of a bucket.'),
    currency: z.string().describe('Currency of the configured prices.'),
    totals: z.object(figures).describe('Sums of the whole time, of all pages.'),
    spend_limit: SpendView.extend({
      hard: z.boolean().describe('Always true: work beyond the limit is refused.'),
    }).meta({ id: 'SpendLimit', description: 'The monthly spend limit of an organization, and what is left of it.' }),
    has_more: z.boolean().describe('Whether there are more buckets or results.'),
    next_page: z
      .string()
      .nullable()
      .describe(
        'Send it as `page` to read the next page; null on the last one. A bucket with many results continues on the next page.',
      ),
    buckets: z
      .array(
        z.object({
          object: z.literal('bucket'),
          start_time: z.int().describe('Start of the bucket, Unix seconds.'),
          end_time: z.int().describe('End of the bucket, Unix seconds, excluded.'),
          results: z
            .array(z.object({ object: z.literal('usage.result'), ...groups, ...figures }))
            .describe('One result for each group with usage; empty if there was none.'),
        }),
      )
      .describe('Buckets, oldest first, also those without usage.'),
  })
  .meta({ id: 'UsageReport', description: 'What the finished work of an organization has used.' })

const lists = ['group_by', 'models', 'tasks', 'token_ids', 'user_ids'] as const

/** Reads the query. A list may also be one value, or several with commas. */
function read(call: Call): z.output<typeof Query> {
  const given = queryOf(call)
  for (const name of lists) {
    const value = given[name]
    if (typeof value === 'string') given[name] = value.split(',')
  }
  const result = Query.safeParse(given)
  if (!result.success) throw failureOfIssues(result.error, given, Query)
  return result.data
}

function requestOf(
  organization: Organization,
  limits: Pick<EffectiveLimits, 'monthlySpendLimit'>,
  query: z.output<typeof Query>,
): UsageRequest {
  const filters = { model_id: query.models, task: query.tasks, token_id: query.token_ids, user_id: query.user_ids }
  const { most } = pageBuckets[query.bucket_width]
  if (query.limit !== undefined && query.limit > most)
    throw new Failure('invalid_value', `'limit' is at most ${most} for buckets of '${query.bucket_width}'.`, {
      param: 'limit',
    })
  return {
    organizationId: organization.id,
    limits,
    start: query.start_time,
    end: query.end_time,
    width: query.bucket_width,
    groupBy: [...new Set<UsageGroup>(query.group_by ?? [])],
    only: Object.fromEntries(Object.entries(filters).filter(([, list]) => list !== undefined)),
    limit: query.limit,
    page: query.page,
  }
}

/** The route that reads usage. */
export const usageRoutes = (owners: Pick<Owners, 'organizations' | 'plans' | 'usage'>) => [
  route({
    method: 'GET',
    path: '/api/organizations/:organization/usage',
    scope: 'admin:read',
    tag: 'Organizations and tokens',
    summary: 'Get usage',
    description:
      'Returns what the finished work of the organization has used, in buckets of time. Times are rounded to whole buckets. Work counts when it ends, and its usage is kept after the job is deleted. A token of the organization that owns the machine may read every organization.',
    errorCodes: ['organization_mismatch', 'not_found', 'no_capacity'],
    params: OrganizationPath,
    query: Query,
    response: Usage,
    media: ['text/csv'],
    async answer(call) {
      const organization = await reachOrganization(call.params['organization'] ?? '', call, owners)
      const query = read(call)
      const request = requestOf(organization, owners.plans.limitsOf(organization), query)
      if (query.format === 'csv') return sendCsv(call, owners.usage.csv(request), `usage-${organization.id}.csv`)
      const { buckets, ...report } = await owners.usage.read(request)
      // The buckets are text already: serializing a year by day would block the event loop.
      call.send(200, `${JSON.stringify(report).slice(0, -1)},"buckets":${buckets}}`)
    },
  }),
]
