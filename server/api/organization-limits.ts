import { z } from 'zod'
import {
  limitsOfChange,
  limitsView,
  OrganizationLimitsChange,
  OrganizationLimitsView,
} from '../../core/accounts/organization-view.ts'
import { Failure } from '../../core/failure.ts'
import { admitOwner } from '../machine-owner.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { actorOf, OrganizationPath, reachOrganization } from './reach.ts'

const tag = 'Organizations and tokens'
const path = '/api/organizations/:organization/limits'

const Limits = z
  .object({
    plan: z.string().describe('The plan that limits without a number are taken from.'),
    limits: OrganizationLimitsView,
  })
  .meta({ id: 'OrganizationLimitsAnswer', description: 'The plan and the limits of an organization.' })

/** The routes of the limits of an organization. */
export const organizationLimitRoutes = (owners: Pick<Owners, 'organizations'>) => [
  route({
    method: 'GET',
    path,
    scope: 'admin:read',
    tag,
    summary: 'Get limits',
    description: 'Returns the limits that an organization has of its own; null stands for the figure of its plan.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OrganizationPath,
    response: Limits,
    handle: async ({ params }, call) => {
      const organization = await reachOrganization(params.organization, call, owners)
      return { plan: organization.plan, limits: limitsView(organization) }
    },
  }),
  route({
    method: 'PATCH',
    path,
    scope: 'admin:write',
    tag,
    summary: 'Update limits',
    description: `Changes limits of an organization from the next request on; null returns to the figure of its plan. Only for the owner of the machine: a token of the organization \`default\`.`,
    errorCodes: ['organization_mismatch', 'not_found', 'conflict'],
    params: OrganizationPath,
    body: OrganizationLimitsChange,
    example: { job_submissions_per_minute: 20, monthly_spend_limit: 100 },
    response: Limits,
    handle: async ({ params, body }, call) => {
      admitOwner(call, 'Changes of limits are')
      const updated = await owners.organizations.update(params.organization, limitsOfChange(body), actorOf(call))
      if (!updated) throw new Failure('not_found', `There is no organization ${params.organization.slice(0, 64)}.`)
      return { plan: updated.plan, limits: limitsView(updated) }
    },
  }),
]
