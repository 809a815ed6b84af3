import { TokenView, tokenView } from '../../../core/accounts/token-fields.ts'
import { array, namedObject, object, string } from '../../../core/schemas/fields.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import {
  callerLimitsView,
  LimitUse,
  limitUse,
  OrganizationLimitsView,
  SpendUse,
  spendUse,
} from '../../views/limit-use.ts'

const route = routeOf({ tag: 'Organizations and tokens' })

const Me = namedObject('Me', 'The token of the request, its organization, and what is left of its limits.', {
  token: TokenView,
  organization: object('The organization of the token.', {
    id: string('Id of the organization: `org_…`.'),
    name: string('Name of the organization.'),
    plan: string('Plan, which sets the default limits and the share of the GPUs.'),
    limits: OrganizationLimitsView.describe('Effective limits of the organization.'),
  }),
  limits: array('Every limit that applies to the caller, and what is left of it.', LimitUse),
  spend: SpendUse,
})

export const meRoutes = (owners: Owners<'accounts' | 'limiter' | 'spend' | 'tokenLimiter'>) => [
  route('GET /api/me', 'user:read', {
    summary: 'Get own token',
    description: 'Returns the token of the request, its organization, the limits of both, and what is left of them.',
    response: Me,
    handle: async (_, { caller }) => ({
      token: tokenView((await owners.accounts.token(caller.organizationId, caller.tokenId))!),
      organization: {
        id: caller.organizationId,
        name: caller.token.organizationName,
        plan: caller.token.plan,
        limits: callerLimitsView(caller),
      },
      limits: limitUse(caller, await owners.accounts.use(caller.organizationId), owners),
      spend: spendUse(caller, owners.spend),
    }),
  }),
]
