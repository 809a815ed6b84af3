import { z } from 'zod'
import type { TokenRecord } from '../store/store.ts'
import { statusAt } from './accounts.ts'
import { shownTokenFields, shownTokenLimits } from './token-fields.ts'

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

const seconds = (ms: number | null): number | null => (ms === null ? null : Math.floor(ms / 1000))

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
  ...shownTokenLimits(token.limits),
  metadata: token.metadata === null ? null : (JSON.parse(token.metadata) as Record<string, string>),
})
