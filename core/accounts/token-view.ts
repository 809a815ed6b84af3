import { z } from 'zod'
import type { TokenRecord } from '../store/store.ts'
import { statusAt } from './accounts.ts'

/** A token as the API and the command line show it: times in epoch seconds, never a secret. */
export const TokenView = z
  .object({
    id: z.string(),
    name: z.string(),
    scopes: z.array(z.string()),
    status: z.enum(['active', 'disabled', 'revoked', 'expired']),
    hint: z.string(),
    models: z.array(z.string()).nullable(),
    created_at: z.int(),
    expires_at: z.int().nullable(),
    last_used_at: z.int().nullable(),
    created_by: z.string().nullable(),
  })
  .meta({ id: 'Token' })
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
})
