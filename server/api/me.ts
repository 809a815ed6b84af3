import { z } from 'zod'
import { TokenView, tokenView } from '../../core/accounts/token-view.ts'
import { plans } from '../../core/store/store.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'

const Me = z
  .object({
    token: TokenView,
    organization: z.object({
      id: z.string(),
      name: z.string(),
      plan: z.enum(plans),
      limits: z.object({ api_requests_per_minute: z.int().nullable(), job_submissions_per_minute: z.int().nullable() }),
    }),
  })
  .meta({ id: 'Me' })

/** The route that describes the caller. */
export const meRoutes = ({ accounts }: Pick<Owners, 'accounts'>) => [
  route({
    method: 'GET',
    path: '/api/me',
    scope: 'user:read',
    tag: 'Organizations and tokens',
    summary: 'Who this token is, and what its organization may do',
    description: 'A limit of null means unlimited.',
    response: Me,
    handle: async (_, { caller }) => ({
      token: tokenView((await accounts.token(caller.organizationId, caller.tokenId))!),
      organization: {
        id: caller.organizationId,
        name: caller.token.organizationName,
        plan: caller.token.plan,
        limits: {
          api_requests_per_minute: caller.requestsPerMinute || null,
          job_submissions_per_minute: caller.jobsPerMinute || null,
        },
      },
    }),
  }),
]
