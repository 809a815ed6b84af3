import { z } from 'zod'
import { invalid } from '../../../core/failure.ts'
import { type JobPage, listTogether } from '../../../core/jobs/all-jobs.ts'
import {
  array,
  namedObject,
  nullableString,
  optional,
  optionalOneOf,
  optionalStringUpTo,
  queryTime,
} from '../../../core/schemas/fields.ts'
import { Task } from '../../../core/schemas/task.ts'
import { jobStatuses } from '../../../core/store/store.ts'
import { scopeRefusal } from '../../http/access/auth.ts'
import { reachOrganization, requireMachineOwner } from '../../http/access/reach.ts'
import { pageFields, pageLimit } from '../../http/answer/page.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { filterOf } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'
import { isJobId, JobSummary, summaryText } from '../../views/job-record.ts'

const route = routeOf({ tag: 'Jobs' })

const ListQuery = z.strictObject({
  status: optionalOneOf('Only jobs with this status.', jobStatuses),
  task: optional(Task, 'Only jobs of this task.'),
  model_id: optionalStringUpTo(128, 'Only jobs of this model.'),
  user_id: optionalStringUpTo(64, 'Only jobs of the tokens of this user.'),
  token_id: optionalStringUpTo(64, 'Only jobs that this token created.'),
  workflow_execution_id: optionalStringUpTo(64, 'Only jobs of the nodes of this execution.'),
  kind: optionalOneOf('`async`: background jobs. `sync`: synchronous requests. Default: both.', ['async', 'sync']),
  created_after: queryTime.describe('Only jobs created after this second, in Unix seconds.'),
  created_before: queryTime.describe('Only jobs created before this second, in Unix seconds.'),
  organization: optionalStringUpTo(
    64,
    'Id of another organization, or `all`: only for the owner of the machine, with the scope `admin:read`. Jobs of other organizations are listed without prompts and images. Default: the organization of the token.',
  ),
  q: optionalStringUpTo(
    500,
    'Words of the prompt, in any case: only background jobs of the own organization whose inputs are kept and are at most 8 KiB.',
  ),
  metadata: optional(
    z.record(z.string(), z.string()),
    '`?metadata[ref]=42`: only jobs with exactly this value under this name.',
  ),
  limit: pageLimit,
  after: optional(
    z.string().refine(isJobId, 'This is no cursor of the list.'),
    '`next_cursor` of the page before, or the id of its last job. Default: the first page.',
  ),
})

const ListedJob = JobSummary.extend({
  prompt: nullableString(
    'The first 200 characters of what a person wrote: the prompt, the last message of the user, or the text. Null if there is none, if the inputs are not kept or are larger than 8 KiB, and for other organizations.',
  ),
  thumbnail_url: nullableString(
    'Where to read a small image of the result (WebP). Signed: it needs no token. Null if there is none.',
  ),
}).meta({ id: 'ListedJob', description: 'A job without its inputs and result, with what shows it in a list.' })

const Page = namedObject('JobPage', 'A page of jobs.', {
  jobs: array('The jobs, newest first.', ListedJob),
  ...pageFields,
})

type ListOwners = Owners<'files' | 'jobs' | 'organizations'>

/**
 * The organizations whose jobs the caller wants to see. Throws Failure `organization_mismatch` or `insufficient_scope` for
 * one that the token may not see, and `not_found` for one that does not exist.
 */
async function listedOrganizations(wanted: string, exchange: ClientExchange, owners: ListOwners): Promise<string[]> {
  requireMachineOwner(exchange, 'Jobs of other organizations are')
  const refusal = scopeRefusal(exchange.caller, 'admin:read')
  if (refusal) throw refusal
  if (wanted !== 'all') return [(await reachOrganization(wanted, exchange, owners)).id]
  const all = await owners.organizations.list()
  return all.flatMap(({ id, status }) => (status === 'deleted' ? [] : [id]))
}

/** The page as JSON text. Only the jobs of the caller's own organization have excerpts. */
async function pageText({ jobs, next }: JobPage, exchange: ClientExchange, owners: ListOwners): Promise<string> {
  const own = exchange.caller.organizationId
  const ids = jobs.flatMap(({ kind, organizationId, id }) => (kind === 'async' && organizationId === own ? [id] : []))
  const excerpts = new Map((await owners.jobs.excerpts(own, ids)).map(one => [one.id, one]))
  const listed = jobs.map(job => {
    const { prompt = null, thumbnailId = null } = excerpts.get(job.id) ?? {}
    const thumbnail_url = thumbnailId && owners.files.link({ id: thumbnailId, name: 'thumbnail.webp' }, exchange.origin)
    return `${summaryText(job, owners).slice(0, -1)},${JSON.stringify({ prompt, thumbnail_url }).slice(1)}`
  })
  return `{"jobs":[${listed.join(',')}],"has_more":${next !== null},"next_cursor":${JSON.stringify(next)}}`
}

/** Lists jobs: those of the organization, or for the owner of the machine those of others too. */
export const listRoute = (owners: ListOwners) =>
  route('GET /api/jobs', 'user:read', {
    summary: 'List jobs',
    description:
      'Returns jobs of the organization, newest first, without inputs and results. A synchronous request is listed once it has ended. A page may have fewer than `limit` entries although `has_more` is true: continue with `next_cursor`.',
    errorCodes: ['organization_mismatch', 'not_found'],
    query: ListQuery,
    response: Page,
    handle: async ({ query: { created_after, created_before, workflow_execution_id, ...sent } }, exchange) => {
      const { q, organization, ...query } = sent
      const own = exchange.caller.organizationId
      const isOwn = organization === undefined || organization === own
      if (q?.trim() && !isOwn)
        throw invalid('q', 'Prompts are searched in the own organization only. Leave out `q` or `organization`.')
      if (q?.trim() && workflow_execution_id !== undefined)
        throw invalid('q', 'Prompts of the nodes of an execution are not searched. Leave out `q`.')
      const filter = {
        ...filterOf({ ...query, execution_id: workflow_execution_id }),
        ...(q?.trim() ? { search: q } : {}),
        // Excludes the whole second.
        ...(created_after === undefined ? {} : { createdAfter: created_after * 1000 + 999 }),
        ...(created_before === undefined ? {} : { createdBefore: created_before * 1000 }),
      }
      const page = isOwn
        ? await owners.jobs.list(own, filter)
        : await listTogether(owners.jobs, await listedOrganizations(organization, exchange, owners), filter)
      return new JsonText(await pageText(page, exchange, owners))
    },
  })
