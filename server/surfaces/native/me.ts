import { z } from 'zod'
import { TokenView, tokenView } from '../../../core/accounts/token-fields.ts'
import type { Owners } from '../../http/request/owners.ts'
import { route } from '../../http/request/route.ts'
import {
  callerLimitsView,
  LimitUse,
  limitUse,
  OrganizationLimitsView,
  SpendUse,
  spendUse,
} from '../../views/limit-use.ts'

const Me = z
  .object({
    token: TokenView,
    organization: z
      .object({
        id: z.string().describe('Id of the organization: `org_…`.'),
        name: z.string().describe('Name of the organization.'),
        plan: z.string().describe('Plan, which sets the default limits and the share of the GPUs.'),
        limits: OrganizationLimitsView.describe('Effective limits of the organization.'),
      })
      .describe('The organization of the token.'),
    limits: z.array(LimitUse).describe('Every limit that applies to the caller, and what is left of it.'),
    spend: SpendUse,
  })
  .meta({ id: 'Me', description: 'The token of the request, its organization, and what is left of its limits.' })

/** The route that describes the caller. */
export const meRoutes = ({
  accounts,
  limiter,
  spend,
  tokenLimiter,
}: Pick<Owners, 'accounts' | 'limiter' | 'spend' | 'tokenLimiter'>) => [
  route({
    method: 'GET',
    path: '/api/me',
    scope: 'user:read',
    tag: 'Organizations and tokens',
    summary: 'Get own token',
    description: 'Returns the token of the request, its organization, the limits of both, and what is left of them.',
    response: Me,
    handle: async (_, { caller }) => ({
      token: tokenView((await accounts.token(caller.organizationId, caller.tokenId))!),
      organization: {
        id: caller.organizationId,
        name: caller.token.organizationName,
        plan: caller.token.plan,
        limits: callerLimitsView(caller),
      },
      limits: limitUse(caller, await accounts.use(caller.organizationId), { limiter, tokenLimiter }),
      spend: spendUse(caller, spend),
    }),
  }),
]
