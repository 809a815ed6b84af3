import { z } from 'zod'
import { type Organization, type OrganizationLimits, organizationStatuses } from '../store/store.ts'

/** Millionths of the currency unit, and back. */
export const microsOf = (units: number): number => Math.round(units * 1e6)
export const unitsOf = (micros: number): number => micros / 1e6

const planText = 'Null: the figure of the plan.'
const count = (text: string) => z.int().nullable().describe(`${text} ${planText} 0: no limit.`)

/** Limits of an organization as the API shows them. */
export const OrganizationLimitsView = z
  .object({
    api_requests_per_minute: count('Most API requests per minute.'),
    job_submissions_per_minute: count('Most submissions of work per minute.'),
    concurrent_requests: count('Most synchronous requests at the same time.'),
    pending_jobs: count('Most jobs that wait or run.'),
    stored_bytes: count('Most bytes of all its files.'),
    uploads_per_day: count('Most uploaded files per day in UTC.'),
    monthly_spend_limit: z
      .number()
      .nullable()
      .describe(
        `Most that it may spend per calendar month in UTC, in the currency of the prices. ${planText} 0: no spending.`,
      ),
  })
  .meta({ id: 'OrganizationLimits', description: 'Limits of an organization.' })
export type OrganizationLimitsView = z.output<typeof OrganizationLimitsView>

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
    limits: OrganizationLimitsView,
    created_at: z.int().describe('Unix seconds.'),
    updated_at: z.int().describe('Unix seconds of the last change.'),
  })
  .meta({ id: 'Organization', description: 'An organization.' })
export type OrganizationView = z.output<typeof OrganizationView>

export const organizationLimitsView = (limits: OrganizationLimits): OrganizationLimitsView => ({
  api_requests_per_minute: limits.requestsPerMinute,
  job_submissions_per_minute: limits.jobsPerMinute,
  concurrent_requests: limits.concurrentRequests,
  pending_jobs: limits.pendingJobs,
  stored_bytes: limits.storedBytes,
  uploads_per_day: limits.uploadsPerDay,
  monthly_spend_limit: limits.monthlySpendLimit === null ? null : unitsOf(limits.monthlySpendLimit),
})

export const organizationView = (it: Organization): OrganizationView => ({
  id: it.id,
  name: it.name,
  plan: it.plan,
  status: it.status,
  region: it.region,
  share: it.share,
  limits: organizationLimitsView(it),
  created_at: Math.floor(it.createdAt / 1000),
  updated_at: Math.floor(it.updatedAt / 1000),
})

const some = z.int().min(0).max(Number.MAX_SAFE_INTEGER).nullish()

/** Limits of an organization to change. Absent ones stay, null is the figure of the plan. */
export const OrganizationLimitsChange = z
  .strictObject({
    api_requests_per_minute: some.describe(`Most API requests per minute. ${planText} 0: no limit.`),
    job_submissions_per_minute: some.describe(`Most submissions of work per minute. ${planText} 0: no limit.`),
    concurrent_requests: some.describe(`Most synchronous requests at the same time. ${planText} 0: no limit.`),
    pending_jobs: some.describe(`Most jobs that wait or run. ${planText} 0: no limit.`),
    stored_bytes: some.describe(`Most bytes of all its files. ${planText} 0: no limit.`),
    uploads_per_day: some.describe(`Most uploaded files per day in UTC. ${planText} 0: no limit.`),
    monthly_spend_limit: z
      .number()
      .min(0)
      .max(1e9)
      .nullish()
      .describe(
        `Most that it may spend per calendar month in UTC, in the currency of the prices. ${planText} 0: no spending.`,
      ),
  })
  .meta({ id: 'OrganizationLimitsChange', description: 'Limits of an organization to change. Absent ones stay.' })
export type OrganizationLimitsChange = z.input<typeof OrganizationLimitsChange>

/** Converts limits of the API to those of the store. Absent ones stay absent. */
export function limitsOfChange(change: OrganizationLimitsChange): Partial<OrganizationLimits> {
  const { monthly_spend_limit: spend } = change
  const limits = {
    requestsPerMinute: change.api_requests_per_minute,
    jobsPerMinute: change.job_submissions_per_minute,
    concurrentRequests: change.concurrent_requests,
    pendingJobs: change.pending_jobs,
    storedBytes: change.stored_bytes,
    uploadsPerDay: change.uploads_per_day,
    monthlySpendLimit: typeof spend === 'number' ? microsOf(spend) : spend,
  }
  return Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined))
}
