import { z } from 'zod'
import { maxOverlapMs } from '../../../core/accounts/accounts.ts'
import { tokenFields } from '../../../core/accounts/token-fields.ts'

const name = z.string().min(1).max(128).describe('Name of the token.')
const Scopes = z.array(z.string()).min(1).max(4)
const patterns = z.array(z.string().min(1).max(128)).min(1).max(100)
const scopesText = 'What the token allows: `user:read`, `user:write`, `admin:read`, `admin:write`.'
const modelsText =
  'Ids or patterns (`qwen*`) of the models that the token may use; null for all that your own token may use.'

/** A request to create a token. */
export const TokenCreate = z
  .strictObject({
    name,
    scopes: Scopes.default(['user:read', 'user:write']).describe(scopesText),
    expires_at: z.int().nullish().describe('When the token expires, in Unix seconds. Default: never.'),
    expires_in: z.int().min(1).optional().describe('Seconds after which the token expires. Wins over `expires_at`.'),
    models: patterns.nullish().describe(`${modelsText} Default: the same as your own token.`),
    ...tokenFields,
    user_id: tokenFields.user_id.describe(
      'Id of the user who owns it, which bounds its scopes by the role; null for nobody. Default: the user of your own token.',
    ),
  })
  .meta({ id: 'TokenCreate', description: 'A token to create.' })

/** A request to change a token. */
export const TokenChange = z
  .strictObject({
    name: name.optional(),
    scopes: Scopes.optional().describe(scopesText),
    status: z.enum(['active', 'disabled']).optional().describe('A disabled token is refused until it is active again.'),
    expires_at: z.int().nullish().describe('When the token expires, in Unix seconds; null for never.'),
    models: patterns.nullish().describe(modelsText),
    ...tokenFields,
  })
  .meta({ id: 'TokenChange', description: 'Fields of a token to change. Absent fields stay.' })

/** A request to replace the secret of a token. */
export const TokenRotate = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(maxOverlapMs / 1000)
      .default(0)
      .describe('Seconds for which the old secret stays valid, 86400 at most.'),
  })
  .meta({ id: 'TokenRotate', description: 'How to replace the secret of a token.' })
