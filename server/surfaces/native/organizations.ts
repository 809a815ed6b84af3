import { z } from 'zod'
import {
  CallStorageField,
  limitsOfChange,
  OrganizationLimitsChange,
  OrganizationLimitsView,
  OrganizationView,
  organizationView,
} from '../../../core/accounts/organization-view.ts'
import { Failure } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import { definedMembers } from '../../../core/members.ts'
import {
  array,
  flag,
  integer,
  namedObject,
  nullish,
  optional,
  optionalOneOf,
  strictObject,
  string,
} from '../../../core/schemas/fields.ts'
import { namedLimits } from '../../../core/store/audit-fields.ts'
import { type Organization, type OrganizationChange, organizationStatuses } from '../../../core/store/store.ts'
import {
  absentOrganization,
  actorOf,
  OrganizationPath,
  ownsMachine,
  reachOrganization,
  reachToChange,
  requireMachineOwner,
} from '../../http/access/reach.ts'
import { deletedObject, pageFields, pageOf, pageQuery } from '../../http/answer/page.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { callerLimitsView, OrganizationLimitsView as EffectiveLimitsView } from '../../views/limit-use.ts'

const name = z.string().trim().min(1).max(128).describe('Name of the organization; unique on this server.')
const plan = z
  .string()
  .max(64)
  .describe('A plan of this server: `free`, `pro` or `enterprise`, or one of `infer.yaml`.')
const region = nullish(
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/, 'Write it as EU or us-east-1.'),
  'The only region whose models it may use, such as `EU`; null for no restriction.',
)
const share = nullish(
  z.int().min(1).max(100),
  'Its share of GPU time while several organizations wait, 1 to 100; null for the share of its plan.',
)

const OrganizationCreate = strictObject('OrganizationCreate', 'An organization to create.', {
  name,
  plan: plan.default('enterprise'),
  region,
  share,
  limits: optional(OrganizationLimitsChange, 'Limits that replace those of the plan.'),
})

const OrganizationUpdate = strictObject(
  'OrganizationUpdate',
  'Fields of an organization to change. Absent fields stay.',
  {
    name: name.optional(),
    plan: plan.optional(),
    region,
    share,
    call_storage: CallStorageField.optional(),
    limits: optional(OrganizationLimitsChange, 'Limits to change. Absent ones stay.'),
  },
)

/** Converts a request to what the store changes. Absent fields stay absent. */
function organizationChangeOf(body: z.output<typeof OrganizationUpdate>): OrganizationChange {
  const { limits, call_storage: callStorage, ...fields } = body
  return { ...definedMembers({ ...fields, callStorage }), ...(limits ? limitsOfChange(limits) : {}) }
}

const route = routeOf({ tag: 'Organizations and tokens' })
const path = '/api/organizations/:organization/limits'
const ofOrganization = {
  params: OrganizationPath,
  errorCodes: ['organization_mismatch', 'not_found', 'conflict'],
} as const
const ownerOnly = 'Only for the owner of the machine: a token of the organization `default`.'

const Limits = namedObject('OrganizationLimitsAnswer', 'The plan and the limits of an organization.', {
  plan: string('The plan that limits without a number are taken from.'),
  share: integer('The share of GPU time that applies: its own, else that of the plan.'),
  limits: OrganizationLimitsView,
  effective: EffectiveLimitsView.describe('The limits that apply: those of its own, else those of the plan.'),
})

type LimitOwners = Owners<'organizations' | 'plans'>

const answer = (organization: Organization, { plans }: Owners<'plans'>) => ({
  plan: organization.plan,
  share: organization.share ?? plans.of(organization.plan).share,
  limits: namedLimits(organization),
  effective: callerLimitsView({ limits: plans.limitsOf(organization) }),
})

export const organizationLimitRoutes = (owners: LimitOwners) => [
  route(`GET ${path}`, 'admin:read', {
    summary: 'Get limits',
    description:
      'Returns the limits that an organization has of its own, where null stands for the figure of its plan, and those that apply.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OrganizationPath,
    response: Limits,
    handle: async ({ params }, exchange) =>
      answer(await reachOrganization(params.organization, exchange, owners), owners),
  }),
  route(`PATCH ${path}`, 'admin:write', {
    summary: 'Update limits',
    description: `Changes limits of an organization from the next request on; null returns to the figure of its plan. ${ownerOnly}`,
    ...ofOrganization,
    body: OrganizationLimitsChange,
    example: { job_submissions_per_minute: 20, monthly_spend_limit: 100 },
    response: Limits,
    handle: async ({ params, body }, exchange) => {
      requireMachineOwner(exchange, 'Changes of limits are')
      const updated = await owners.organizations.update(params.organization, limitsOfChange(body), actorOf(exchange))
      if (!updated) throw absentOrganization(params.organization)
      return answer(updated, owners)
    },
  }),
]

const One = namedObject('OrganizationAnswer', 'One organization.', { organization: OrganizationView })
const Page = namedObject('OrganizationPage', 'A page of organizations.', {
  organizations: array('The organizations, newest first.', OrganizationView),
  ...pageFields,
})
const cancelled = {
  jobs_cancelled: integer('Jobs that were cancelled, without those of executions.'),
  executions_cancelled: integer('Executions of workflows that were cancelled.'),
  requests_cancelled: integer('Running synchronous requests that were cancelled.'),
}
const Suspended = namedObject('OrganizationSuspended', 'A suspended organization, and what was cancelled.', {
  organization: OrganizationView,
  ...cancelled,
})
const Deleted = deletedObject(
  'OrganizationDeleted',
  'Confirms that an organization was deleted, and says what was ended.',
  ['organization', 'organization'],
  {
    ...cancelled,
    tokens_revoked: integer('Tokens that were revoked.'),
    users_removed: integer('Users who were removed.'),
    files_removed: integer('Files whose addresses no longer work. Their bytes are erased shortly after.'),
    workflows_removed: integer('Stored workflows that were removed.'),
  },
)

type OrganizationOwners = Owners<'organizations' | 'jobs' | 'files'>

/** Lists newest first: all organizations for the owner of the machine, the own one for others. */
async function list(
  { limit, after, status }: { limit: number; after?: string | undefined; status?: Organization['status'] | undefined },
  exchange: ClientExchange,
  { organizations }: OrganizationOwners,
): Promise<z.input<typeof Page>> {
  const all = ownsMachine(exchange)
    ? await organizations.list()
    : [await organizations.find(exchange.caller.organizationId)].filter(one => one !== undefined)
  const found = all
    .filter(one => (status === undefined || one.status === status) && (after === undefined || one.id < after))
    .sort((a, b) => (a.id < b.id ? 1 : -1))
  const { entries, end } = pageOf(found, limit)
  return { organizations: entries.map(organizationView), ...end }
}

/** Cancels the running synchronous requests of an organization. Returns how many. */
async function cancelCalls(id: string, { jobs }: OrganizationOwners): Promise<number> {
  await jobs.calls.known()
  const reason = new Failure('cancelled', 'The request was cancelled with the work of its organization.')
  return jobs.calls.cancelAll(id, reason)
}

async function suspend(
  id: string,
  cancel: boolean,
  exchange: ClientExchange,
  owners: OrganizationOwners,
): Promise<z.input<typeof Suspended>> {
  const done = await owners.organizations.suspend(id, { cancel }, actorOf(exchange))
  if (!done) throw absentOrganization(id)
  return {
    organization: organizationView(done.organization),
    jobs_cancelled: done.cancelled.jobs,
    executions_cancelled: done.cancelled.executions,
    requests_cancelled: cancel ? await cancelCalls(id, owners) : 0,
  }
}

async function remove(
  id: string,
  force: boolean,
  exchange: ClientExchange,
  owners: OrganizationOwners,
): Promise<z.input<typeof Deleted>> {
  await owners.jobs.calls.known()
  const running = owners.jobs.calls.runningOf(id)
  if (running > 0 && !force)
    throw new Failure(
      'conflict',
      `The organization has ${running} running requests. Wait for their end, or add ?force=true, which cancels them.`,
    )
  const done = await owners.organizations.remove(id, { force }, actorOf(exchange))
  if (!done) throw absentOrganization(id)
  const requests = await cancelCalls(id, owners)
  void owners.files.sweep()
  return {
    id,
    object: 'organization',
    deleted: true,
    jobs_cancelled: done.work.jobs,
    executions_cancelled: done.work.executions,
    requests_cancelled: requests,
    tokens_revoked: done.tokensRevoked,
    users_removed: done.usersRemoved,
    files_removed: done.filesRemoved,
    workflows_removed: done.workflowsRemoved,
  }
}

const base = '/api/organizations'

/** The routes of organizations. Members, tokens and the audit log have their own files. */
export const organizationRoutes = (owners: OrganizationOwners) => [
  route(`POST ${base}`, 'admin:write', {
    bucket: 'api',
    summary: 'Create organization',
    description: `Creates an organization. It has no token yet: create one below \`/api/organizations/{id}/tokens\`. ${ownerOnly}`,
    errorCodes: ['organization_mismatch', 'conflict', 'disk_full'],
    body: OrganizationCreate,
    example: { name: 'research', plan: 'pro', limits: { monthly_spend_limit: 100 } },
    response: One,
    status: 201,
    handle: async ({ body }, exchange) => {
      requireMachineOwner(exchange, 'New organizations are')
      const { name, plan, ...more } = { ...body, ...organizationChangeOf(body) }
      const { limits: _limits, ...change } = more
      const made = await owners.organizations.create({ name, plan, ...change }, actorOf(exchange))
      return { organization: organizationView(made) }
    },
  }),
  route(`GET ${base}`, 'admin:read', {
    summary: 'List organizations',
    description:
      'Returns all organizations to the owner of the machine, deleted ones included, newest first; to others their own one.',
    query: z.strictObject({
      ...pageQuery(id => isId(id, 'org_')),
      status: optionalOneOf('Only organizations with this status.', organizationStatuses),
    }),
    response: Page,
    handle: ({ query }, exchange) => list(query, exchange, owners),
  }),
  route(`GET ${base}/:organization`, 'admin:read', {
    summary: 'Get organization',
    description: 'Returns an organization with its plan, limits and status.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OrganizationPath,
    response: One,
    handle: async ({ params }, exchange) => ({
      organization: organizationView(await reachOrganization(params.organization, exchange, owners)),
    }),
  }),
  route(`PATCH ${base}/:organization`, 'admin:write', {
    summary: 'Update organization',
    description:
      'Renames an organization, or changes its plan, limits, share, region or what is stored of its calls. An organization may rename itself and choose what is stored; the rest is only for the owner of the machine. Limits count from the next request.',
    ...ofOrganization,
    body: OrganizationUpdate,
    example: { name: 'research', limits: { job_submissions_per_minute: 20 } },
    response: One,
    handle: async ({ params, body }, exchange) => {
      const { id } = await reachToChange(params.organization, exchange, owners)
      const { name, callStorage, ...privileged } = organizationChangeOf(body)
      if (Object.keys(privileged).length > 0)
        requireMachineOwner(exchange, 'Changes of plan, limits, share and region are')
      const change = { ...privileged, ...definedMembers({ name, callStorage }) }
      const updated = await owners.organizations.update(id, change, actorOf(exchange))
      if (!updated) throw absentOrganization(id)
      return { organization: organizationView(updated) }
    },
  }),
  route(`DELETE ${base}/:organization`, 'admin:write', {
    summary: 'Delete organization',
    description: `Deletes an organization for good: its tokens and users, files, jobs, executions and workflows. Its usage, its ledger and its audit log are kept, and its name is free again. Refused while it has unfinished work, unless \`?force=true\` cancels it. ${ownerOnly}`,
    ...ofOrganization,
    query: z.strictObject({ force: flag('`true`: cancels unfinished work.') }),
    response: Deleted,
    handle: ({ params, query }, exchange) => {
      requireMachineOwner(exchange, 'Deletions of organizations are')
      return remove(params.organization, query.force === 'true', exchange, owners)
    },
  }),
  route(`POST ${base}/:organization/suspend`, 'admin:write', {
    bucket: 'api',
    summary: 'Suspend organization',
    description: `Refuses the tokens of an organization with 403 \`organization_disabled\` and ends its open streams within 2 s. What runs is finished, and jobs that wait stay until it is resumed; with \`?cancel=true\` both are cancelled. Signed addresses of files work until they expire. ${ownerOnly}`,
    ...ofOrganization,
    query: z.strictObject({ cancel: flag('`true`: cancels running and waiting work.') }),
    response: Suspended,
    handle: ({ params, query }, exchange) => {
      requireMachineOwner(exchange, 'Suspensions of organizations are')
      return suspend(params.organization, query.cancel === 'true', exchange, owners)
    },
  }),
  route(`POST ${base}/:organization/resume`, 'admin:write', {
    bucket: 'api',
    summary: 'Resume organization',
    description: `Accepts the tokens of a suspended organization again, and starts its waiting jobs. ${ownerOnly}`,
    ...ofOrganization,
    response: One,
    handle: async ({ params }, exchange) => {
      requireMachineOwner(exchange, 'Suspensions of organizations are')
      const resumed = await owners.organizations.resume(params.organization, actorOf(exchange))
      if (!resumed) throw absentOrganization(params.organization)
      return { organization: organizationView(resumed) }
    },
  }),
]
