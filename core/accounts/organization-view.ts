import { z } from 'zod'
import { mapMembers } from '../members.ts'
import { namedLimits, organizationLimitNames } from '../store/audit-fields.ts'
import { callStorages, type Organization, type OrganizationLimits, organizationStatuses } from '../store/store.ts'

/** Millionths of the currency unit. */
export const microsOf = (units: number): number => Math.round(units * 1e6)

const planText = 'Null: the figure of the plan.'
const limitTexts = mapMembers(
  {
    api_requests_per_minute: 'Most API requests per minute.',
    job_submissions_per_minute: 'Most submissions of work per minute.',
    concurrent_requests: 'Most synchronous requests at the same time.',
    pending_jobs: 'Most jobs that wait or run.',
    stored_bytes: 'Most bytes of all its files.',
    uploads_per_day: 'Most uploaded files per day in UTC.',
  } satisfies Record<keyof typeof organizationLimitNames, string>,
  text => `${text} ${planText} 0: no limit.`,
)
const spendText = `Most that it may spend per calendar month in UTC, in the currency of the prices. ${planText} 0: no spending.`

const localText =
  '`true`: its work never leaves this machine; models that run elsewhere are refused. Null: what the plan says.'

/** Limits of an organization as the API shows them. */
export const OrganizationLimitsView = z
  .object({
    ...mapMembers(limitTexts, text => z.int().nullable().describe(text)),
    monthly_spend_limit: z.number().nullable().describe(spendText),
    local_only: z.boolean().nullable().describe(localText),
  })
  .meta({ id: 'OrganizationLimits', description: 'Limits of an organization.' })
export type OrganizationLimitsView = z.output<typeof OrganizationLimitsView>

/** What is stored of calls of an organization. */
export const CallStorageField = z
  .enum(callStorages)
  .describe(
    '`content`: conversations are kept on the server until they are deleted. `metadata`: they are not, and the console keeps them in the browser. What is kept already stays.',
  )

/** An organization as the API and the CLI show it: times in epoch seconds. */
export const OrganizationView = z
  .object({
    id: z.string().describe('Id of the organization: `org_…`.'),
    name: z.string().describe('Name of the organization.'),
    plan: z.string().describe('Plan, which sets the default limits and the share of the GPUs.'),
    status: z
      .enum(organizationStatuses)
      .describe('`suspended`: its tokens are refused and its jobs wait. `deleted`: only usage and audit log are kept.'),
    region: z.string().nullable().describe('The only region whose models it may use; null without a restriction.'),
    share: z
      .int()
      .nullable()
      .describe('Its share of GPU time while several organizations wait, 1 to 100; null for the share of its plan.'),
    call_storage: CallStorageField,
    limits: OrganizationLimitsView,
    created_at: z.int().describe('Unix seconds.'),
    updated_at: z.int().describe('Unix seconds of the last change.'),
  })
  .meta({ id: 'Organization', description: 'An organization.' })
export type OrganizationView = z.output<typeof OrganizationView>

export const organizationView = (it: Organization): OrganizationView => ({
  id: it.id,
  name: it.name,
  plan: it.plan,
  status: it.status,
  region: it.region,
  share: it.share,
  call_storage: it.callStorage,
  limits: namedLimits(it),
  created_at: Math.floor(it.createdAt / 1000),
  updated_at: Math.floor(it.updatedAt / 1000),
})

const some = z.int().min(0).max(Number.MAX_SAFE_INTEGER).nullish()

/** Limits of an organization to change. Absent ones stay, null is the figure of the plan. */
export const OrganizationLimitsChange = z
  .strictObject({
    ...mapMembers(limitTexts, text => some.describe(text)),
    monthly_spend_limit: z.number().min(0).max(1e9).nullish().describe(spendText),
    local_only: z.boolean().nullish().describe(localText),
  })
  .meta({ id: 'OrganizationLimitsChange', description: 'Limits of an organization to change. Absent ones stay.' })
export type OrganizationLimitsChange = z.input<typeof OrganizationLimitsChange>

/** Converts limits of the API to those of the store. Absent ones stay absent. */
export function limitsOfChange({ monthly_spend_limit: spend, local_only, ...change }: OrganizationLimitsChange) {
  const limits: Partial<OrganizationLimits> = {}
  for (const [name, limit] of Object.entries(change) as [
    keyof typeof organizationLimitNames,
    number | null | undefined,
  ][])
    if (limit !== undefined) limits[organizationLimitNames[name]] = limit
  if (spend !== undefined) limits.monthlySpendLimit = spend === null ? null : microsOf(spend)
  if (local_only !== undefined) limits.localOnly = local_only
  return limits
}
