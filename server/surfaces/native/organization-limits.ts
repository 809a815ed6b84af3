import { z } from 'zod'
import {
  limitsOfChange,
  OrganizationLimitsChange,
  OrganizationLimitsView,
  organizationLimitsView,
} from '../../../core/accounts/organization-view.ts'
import { Failure } from '../../../core/failure.ts'
import { string } from '../../../core/schemas/fields.ts'
import type { Organization } from '../../../core/store/store.ts'
import { requireMachineOwner } from '../../http/access/machine-owner.ts'
import { actorOf, OrganizationPath, reachOrganization } from '../../http/access/reach.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { callerLimitsView, OrganizationLimitsView as EffectiveLimitsView } from '../../views/limit-use.ts'

const route = routeOf({ tag: 'Organizations and tokens' })
const path = '/api/organizations/:organization/limits'

const Limits = z
  .object({
    plan: string('The plan that limits without a number are taken from.'),
    limits: OrganizationLimitsView,
    effective: EffectiveLimitsView.describe('The limits that apply: those of its own, else those of the plan.'),
  })
  .meta({ id: 'OrganizationLimitsAnswer', description: 'The plan and the limits of an organization.' })

type LimitOwners = Pick<Owners, 'organizations' | 'plans'>

const answer = (organization: Organization, { plans }: Pick<Owners, 'plans'>): z.input<typeof Limits> => ({
  plan: organization.plan,
  limits: organizationLimitsView(organization),
  effective: callerLimitsView({ limits: plans.limitsOf(organization) }),
})

/** The routes of the limits of an organization. */
export const organizationLimitRoutes = (owners: LimitOwners) => [
  route(`GET ${path}`, 'admin:read', {
    summary: 'Get limits',
    description:
      'Returns the limits that an organization has of its own, where null stands for the figure of its plan, and those that apply.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OrganizationPath,
    response: Limits,
    handle: async ({ params }, call) => answer(await reachOrganization(params.organization, call, owners), owners),
  }),
  route(`PATCH ${path}`, 'admin:write', {
    summary: 'Update limits',
    description: `Changes limits of an organization from the next request on; null returns to the figure of its plan. Only for the owner of the machine: a token of the organization \`default\`.`,
    errorCodes: ['organization_mismatch', 'not_found', 'conflict'],
    params: OrganizationPath,
    body: OrganizationLimitsChange,
    example: { job_submissions_per_minute: 20, monthly_spend_limit: 100 },
    response: Limits,
    handle: async ({ params, body }, call) => {
      requireMachineOwner(call, 'Changes of limits are')
      const updated = await owners.organizations.update(params.organization, limitsOfChange(body), actorOf(call))
      if (!updated) throw new Failure('not_found', `There is no organization ${params.organization.slice(0, 64)}.`)
      return answer(updated, owners)
    },
  }),
]
