import { z } from 'zod'
import { definedMembers } from '../members.ts'
import { isTimeZone } from '../schedule/time-zone.ts'
import { namedTokenLimits, seconds } from '../store/audit-fields.ts'
import { type TokenLimits, type TokenRecord, weekdays } from '../store/store.ts'
import { statusAt } from './accounts.ts'
import { microsOf } from './organization-view.ts'

const time = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$|^24:00$/, 'Write it as 08:00; 24:00 is the end of the day.')

/** When a token may be used. */
export const AllowedHours = z
  .strictObject({
    timezone: z
      .string()
      .max(64)
      .refine(isTimeZone, 'This is no time zone. Write it as Europe/Berlin or UTC.')
      .describe('IANA name of the time zone, such as `Europe/Berlin`.'),
    ranges: z
      .array(
        z
          .strictObject({
            days: z.array(z.enum(weekdays)).min(1).max(7).describe('Days of the week.'),
            from: time.describe('Time of day at which it begins: `08:00`.'),
            to: time.describe('Time of day at which it ends; `24:00` is the end of the day.'),
          })
          .refine(({ from, to }) => from < to, { message: "'from' must be before 'to'.", path: ['to'] }),
      )
      .min(1)
      .max(50)
      .describe('The token may be used in any of these.'),
  })
  .meta({ id: 'AllowedHours', description: 'Times of the week in which a token may be used.' })

/** OpenAI's metadata: up to 16 texts by name. */
export const Metadata = z
  .record(z.string().min(1).max(64), z.string().max(512))
  .refine(all => Object.keys(all).length <= 16, 'There are at most 16 entries.')

const perMinute = (text: string) => z.int().min(1).max(1_000_000_000).nullable().describe(text)

/** Rate limits of a token. */
const RateLimit = z
  .strictObject({
    api: perMinute('Most API requests per minute; null for no limit of its own.').default(null),
    jobs: perMinute('Most submissions of work per minute; null for no limit of its own.').default(null),
  })
  .meta({ id: 'TokenRateLimit', description: 'Rate limits of a token, besides those of its organization.' })

/** Fields of a token besides its name, scopes, models and expiry, as a caller sends them. */
export const tokenFields = {
  user_id: z.string().max(64).nullish().describe('Id of the user who owns it; null for nobody.'),
  rate_limit: RateLimit.nullish().describe('Rate limits of the token; null for none of its own.'),
  tokens_per_minute: perMinute('Most input and output tokens of models per minute; null for no limit.').optional(),
  concurrent_requests: perMinute('Most synchronous requests at the same time; null for no limit.').optional(),
  monthly_spend_limit: z
    .number()
    .min(0)
    .max(1e9)
    .nullish()
    .describe(
      'Most that it may spend per calendar month in UTC, in the currency of the prices; null for no limit, 0 for no spending.',
    ),
  local_only: z
    .boolean()
    .optional()
    .describe(
      '`true`: its work never leaves this machine. It may not use models that run elsewhere, neither by name nor as fallbacks.',
    ),
  allowed_hours: AllowedHours.nullish().describe('When the token may be used; null for always.'),
  metadata: Metadata.nullish().describe('Up to 16 texts by name, such as a department; null for none.'),
}

type TokenFields = { [Name in keyof typeof tokenFields]?: z.output<(typeof tokenFields)[Name]> }

/** Converts the limits of a request to those of the store. Absent ones stay absent. */
export function givenTokenLimits(body: TokenFields): Partial<TokenLimits> {
  const { rate_limit: rate, monthly_spend_limit: spend } = body
  const perMinute =
    rate === undefined ? {} : { requestsPerMinute: rate?.api ?? null, jobsPerMinute: rate?.jobs ?? null }
  const others = definedMembers({
    tokensPerMinute: body.tokens_per_minute,
    concurrentRequests: body.concurrent_requests,
    monthlySpendLimit: typeof spend === 'number' ? microsOf(spend) : spend,
    allowedHours: body.allowed_hours,
    localOnly: body.local_only,
  })
  return { ...perMinute, ...others }
}

/** The same fields as they are shown: none is absent. */
const shownTokenFields = {
  user_id: z.string().nullable().describe('Id of the user who owns it; null for nobody.'),
  rate_limit: z
    .object({
      api: z.int().nullable().describe('Most API requests per minute; null for no limit of its own.'),
      jobs: z.int().nullable().describe('Most submissions of work per minute; null for no limit of its own.'),
    })
    .describe('Rate limits of the token, besides those of its organization.'),
  tokens_per_minute: z
    .int()
    .nullable()
    .describe('Most input and output tokens of models per minute; null for no limit.'),
  concurrent_requests: z
    .int()
    .nullable()
    .describe('Most synchronous requests at the same time; null for no limit of its own.'),
  monthly_spend_limit: z
    .number()
    .nullable()
    .describe('Most that it may spend per calendar month in UTC, in the currency of the prices; null for no limit.'),
  local_only: z.boolean().describe('Whether its work never leaves this machine.'),
  allowed_hours: z
    .object({
      timezone: z.string().describe('IANA name of the time zone.'),
      ranges: z
        .array(
          z.object({
            days: z.array(z.enum(weekdays)).describe('Days of the week.'),
            from: z.string().describe('Time of day at which it begins.'),
            to: z.string().describe('Time of day at which it ends.'),
          }),
        )
        .describe('The token may be used in any of these.'),
    })
    .nullable()
    .describe('When the token may be used; null for always.'),
  metadata: z.record(z.string(), z.string()).nullable().describe('Texts by name; null for none.'),
}

/** A token as the API and the CLI show it: times in epoch seconds, never a secret. */
export const TokenView = z
  .object({
    id: z.string().describe('Id of the token: `tok_…`.'),
    name: z.string().describe('Name of the token.'),
    scopes: z
      .array(z.string())
      .describe('What the token allows: `user:read`, `user:write`, `admin:read`, `admin:write`.'),
    status: z.enum(['active', 'disabled', 'revoked', 'expired']).describe('Only an active token is accepted.'),
    hint: z.string().describe('The last 4 characters of the secret.'),
    models: z
      .array(z.string())
      .nullable()
      .describe('Ids or patterns (`qwen*`) of the models that the token may use; null for all.'),
    created_at: z.int().describe('Unix seconds.'),
    expires_at: z.int().nullable().describe('Unix seconds; null for a token that does not expire.'),
    last_used_at: z.int().nullable().describe('Unix seconds of the last request; null before the first.'),
    created_by: z
      .string()
      .nullable()
      .describe('Id of the token that created it; null for one that the server or the command line created.'),
    ...shownTokenFields,
  })
  .meta({ id: 'Token', description: 'An API token without its secret.' })
export type TokenView = z.output<typeof TokenView>

export const tokenView = (token: TokenRecord, now = Date.now()): TokenView => ({
  id: token.id,
  name: token.name,
  scopes: token.scopes,
  status: statusAt(token, now),
  hint: token.hint,
  models: token.models,
  created_at: Math.floor(token.createdAt / 1000),
  expires_at: seconds(token.expiresAt),
  last_used_at: seconds(token.lastUsedAt),
  created_by: token.createdBy,
  user_id: token.userId,
  ...namedTokenLimits(token.limits),
  metadata: token.metadata === null ? null : (JSON.parse(token.metadata) as Record<string, string>),
})
