import { z } from 'zod'
import { TokenView, tokenView } from '../../core/accounts/token-view.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'

const Me = z
  .object({
    token: TokenView,
    organization: z
      .object({
        id: z.string().describe('Id of the organization: `org_…`.'),
        name: z.string().describe('Name of the organization.'),
        plan: z.string().describe('Plan, which sets the default limits and the share of the GPUs.'),
        limits: z
          .object({
            api_requests_per_minute: z.int().nullable().describe('Most API requests per minute; null for no limit.'),
            job_submissions_per_minute: z
              .int()
              .nullable()
              .describe('Most submissions of work per minute; null for no limit.'),
          })
          .describe('Rate limits of the organization.'),
      })
      .describe('The organization of the token.'),
  })
  .meta({ id: 'Me', description: 'The token of the request and its organization.' })

/** The route that describes the caller. */
export const meRoutes = ({ accounts }: Pick<Owners, 'accounts'>) => [
  route({
    method: 'GET',
    path: '/api/me',
    scope: 'user:read',
    tag: 'Organizations and tokens',
    summary: 'Get own token',
    description: 'Returns the token of the request, its organization, and the rate limits of the organization.',
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
