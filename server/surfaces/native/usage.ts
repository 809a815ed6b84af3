import { z } from 'zod'
import type { EffectiveLimits } from '../../../core/accounts/plans.ts'
import { SpendView } from '../../../core/accounts/spend-view.ts'
import { pageBuckets, type UsageRequest } from '../../../core/accounts/usage-report.ts'
import { invalid } from '../../../core/failure.ts'
import { definedMembers } from '../../../core/members.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableString,
  number,
  object,
  oneOf,
  optional,
  optionalStringUpTo,
  queryTime,
  string,
} from '../../../core/schemas/fields.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { bucketWidths, type Organization, type UsageGroup, usageGroups } from '../../../core/store/store.ts'
import { OrganizationPath, reachOrganization } from '../../http/access/reach.ts'
import { sendCsv } from '../../http/answer/send-pieces.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { queryOf } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'

const route = routeOf({ tag: 'Organizations and tokens' })

const maxValues = 100
const values = z.array(z.string().min(1).max(256)).max(maxValues).optional()
const limits = bucketWidths.map(width => `${pageBuckets[width].most} for \`${width}\``).join(', ')

const Query = z.strictObject({
  start_time: queryTime.describe(
    'Unix seconds. Default: the start of this month in UTC; for `1m` an hour before the end.',
  ),
  end_time: queryTime.describe('Unix seconds, excluded. Default: now.'),
  bucket_width: z
    .enum(bucketWidths)
    .default('1d')
    .describe('Length of a bucket, in UTC. `1m` covers at most 24 hours.'),
  group_by: optional(
    z.array(z.enum(usageGroups)).max(usageGroups.length),
    'One result for each of these, also as `group_by[]` or with commas. Default: one result for each bucket.',
  ),
  models: values.describe('Only these model ids; at most 100.'),
  tasks: values.describe('Only these tasks; at most 100.'),
  token_ids: values.describe('Only these tokens; at most 100.'),
  user_ids: values.describe('Only work of tokens that belonged to these users; at most 100.'),
  limit: optional(z.coerce.number().int().min(1).max(1440), `Most buckets of the page. At most ${limits}.`),
  page: optionalStringUpTo(32, '`next_page` of the page before. Default: the first page.'),
  format: z
    .enum(['json', 'csv'])
    .default('json')
    .describe('`csv`: all buckets as rows, without pages and totals; times are ISO 8601 in UTC.'),
})

const figures = {
  requests: number('Synchronous requests that have ended.'),
  jobs: number('Background jobs that have ended.'),
  failed: number('Requests and jobs that failed.'),
  input_tokens: number('Input tokens.'),
  cached_tokens: number('Input tokens that the engine has reused from its cache.'),
  output_tokens: number('Output tokens.'),
  reasoning_tokens: number('Output tokens of reasoning.'),
  images: number('Images written.'),
  video_seconds: number('Length of the videos written, seconds.'),
  audio_seconds: number('Length of the audio written or transcribed, seconds.'),
  characters: number('Characters turned into audio.'),
  documents: number('Documents ranked and pairs scored.'),
  gpu_seconds: number('Time on a slot × devices of the engine ÷ its slots, seconds.'),
  energy_wh: number('Energy of the devices that report it, watt-hours.'),
  cost: number('Cost in currency units.'),
  queue_seconds: number('Sum of the times from creation to start, seconds.'),
  run_seconds: number('Sum of the times from start to end, seconds.'),
}
const groups = {
  model_id: nullableString('Model; null if not grouped by `model_id`.'),
  task: nullableString('Task; null if not grouped by `task`.'),
  token_id: nullableString('Token; null if not grouped by `token_id`.'),
  user_id: nullableString(
    'User who owned the token at the time; null for tokens of nobody, and if not grouped by `user_id`.',
  ),
  workflow_id: nullableString('Stored workflow; null for other work, and if not grouped by `workflow_id`.'),
  status: nullable(
    z.enum(['completed', 'failed', 'cancelled']),
    'How the work has ended; null if not grouped by `status`.',
  ),
  day: nullableString('Day in UTC, such as `2026-01-31`; null if not grouped by `day`.'),
}

const Usage = namedObject('UsageReport', 'What the finished work of an organization has used.', {
  organization_id: string('Id of the organization: `org_…`.'),
  start_time: integer('Start of the first bucket, Unix seconds.'),
  end_time: integer('End of the last bucket, Unix seconds, excluded.'),
  bucket_width: oneOf('Length of a bucket.', bucketWidths),
  currency: string('Currency of the configured prices.'),
  totals: object('Sums of the whole time, of all pages.', figures),
  spend_limit: SpendView.extend({
    hard: boolean('Always true: work beyond the limit is refused.'),
  }).meta({ id: 'SpendLimit', description: 'The monthly spend limit of an organization, and what is left of it.' }),
  has_more: boolean('Whether there are more buckets or results.'),
  next_page: nullableString(
    'Send it as `page` to read the next page; null on the last one. A bucket with many results continues on the next page.',
  ),
  buckets: array(
    'Buckets, oldest first, also those without usage.',
    z.object({
      object: z.literal('bucket'),
      start_time: integer('Start of the bucket, Unix seconds.'),
      end_time: integer('End of the bucket, Unix seconds, excluded.'),
      results: array(
        'One result for each group with usage; empty if there was none.',
        z.object({ object: z.literal('usage.result'), ...groups, ...figures }),
      ),
    }),
  ),
})

const lists = ['group_by', 'models', 'tasks', 'token_ids', 'user_ids'] as const

/** Reads the query. A list may also be one value, or several with commas. */
function read(exchange: ClientExchange): z.output<typeof Query> {
  const given = queryOf(exchange)
  for (const name of lists) {
    const value = given[name]
    if (typeof value === 'string') given[name] = value.split(',')
  }
  return parsed(Query, given)
}

function requestOf(
  organization: Organization,
  limits: Pick<EffectiveLimits, 'monthlySpendLimit'>,
  query: z.output<typeof Query>,
): UsageRequest {
  const filters = { model_id: query.models, task: query.tasks, token_id: query.token_ids, user_id: query.user_ids }
  const { most } = pageBuckets[query.bucket_width]
  if (query.limit !== undefined && query.limit > most)
    throw invalid('limit', `'limit' is at most ${most} for buckets of '${query.bucket_width}'.`)
  return {
    organizationId: organization.id,
    limits,
    start: query.start_time,
    end: query.end_time,
    width: query.bucket_width,
    groupBy: [...new Set<UsageGroup>(query.group_by ?? [])],
    only: definedMembers(filters),
    limit: query.limit,
    page: query.page,
  }
}

export const usageRoutes = (owners: Owners<'organizations' | 'plans' | 'usage'>) => [
  route('GET /api/organizations/:organization/usage', 'admin:read', {
    summary: 'Get usage',
    description:
      'Returns what the finished work of the organization has used, in buckets of time. Times are rounded to whole buckets. Work counts when it ends, and its usage is kept after the job is deleted. A token of the organization that owns the machine may read every organization.',
    errorCodes: ['organization_mismatch', 'not_found', 'no_capacity'],
    params: OrganizationPath,
    query: Query,
    response: Usage,
    media: ['text/csv'],
    async answer(exchange) {
      const organization = await reachOrganization(exchange.params['organization'] ?? '', exchange, owners)
      const query = read(exchange)
      const request = requestOf(organization, owners.plans.limitsOf(organization), query)
      if (query.format === 'csv') return sendCsv(exchange, owners.usage.csv(request), `usage-${organization.id}.csv`)
      const { buckets, ...report } = await owners.usage.read(request)
      // The buckets are text already: serializing a year by day would block the event loop.
      exchange.send(200, `${JSON.stringify(report).slice(0, -1)},"buckets":${buckets}}`)
    },
  }),
]
