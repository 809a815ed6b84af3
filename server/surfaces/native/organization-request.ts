import { z } from 'zod'
import { limitsOfChange, OrganizationLimitsChange } from '../../../core/accounts/organization-view.ts'
import type { OrganizationChange } from '../../../core/store/store.ts'

const name = z.string().trim().min(1).max(128).describe('Name of the organization; unique on this server.')
const plan = z
  .string()
  .max(64)
  .describe('A plan of this server: `free`, `pro` or `enterprise`, or one of `infer.yaml`.')
const region = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/, 'Write it as EU or us-east-1.')
  .nullish()
  .describe('The only region whose models it may use, such as `EU`; null for no restriction.')
const share = z
  .int()
  .min(1)
  .max(100)
  .nullish()
  .describe('Its share of GPU time while several organizations wait, 1 to 100; null for the share of its plan.')

/** A request to create an organization. */
export const OrganizationCreate = z
  .strictObject({
    name,
    plan: plan.default('enterprise'),
    region,
    share,
    limits: OrganizationLimitsChange.optional().describe('Limits that replace those of the plan.'),
  })
  .meta({ id: 'OrganizationCreate', description: 'An organization to create.' })

/** A request to change an organization. */
export const OrganizationUpdate = z
  .strictObject({
    name: name.optional(),
    plan: plan.optional(),
    region,
    share,
    limits: OrganizationLimitsChange.optional().describe('Limits to change. Absent ones stay.'),
  })
  .meta({ id: 'OrganizationUpdate', description: 'Fields of an organization to change. Absent fields stay.' })

/** Converts a request to what the store changes. Absent fields stay absent. */
export function organizationChangeOf(body: z.output<typeof OrganizationUpdate>): OrganizationChange {
  const { limits, ...fields } = body
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(given) as OrganizationChange), ...(limits ? limitsOfChange(limits) : {}) }
}
