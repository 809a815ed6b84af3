import { z } from 'zod'
import { roles, type UserSummary } from '../store/store.ts'

/** A user as the API and the CLI show him: times in epoch seconds. */
export const UserView = z
  .object({
    id: z.string().describe('Id of the user: `user_…`.'),
    name: z.string().describe('Name of the user.'),
    email: z.string().describe('E-mail address, in lower case.'),
    role: z
      .enum(roles)
      .describe(
        'What tokens of the user may have: `viewer` user:read, `member` user:read and user:write, `admin` and `owner` all scopes. Only owners change owners.',
      ),
    active_tokens: z.int().describe('How many of the tokens are active.'),
    last_used_at: z.int().nullable().describe('Unix seconds of the last use of a token; null before the first.'),
    created_at: z.int().describe('Unix seconds.'),
    updated_at: z.int().describe('Unix seconds of the last change.'),
  })
  .meta({ id: 'User', description: 'A user of an organization, who owns tokens.' })
export type UserView = z.output<typeof UserView>

const seconds = (ms: number): number => Math.floor(ms / 1000)

export const userView = (user: UserSummary): UserView => ({
  id: user.id,
  name: user.name,
  email: user.email,
  role: user.role,
  active_tokens: user.activeTokens,
  last_used_at: user.lastUsedAt === null ? null : seconds(user.lastUsedAt),
  created_at: seconds(user.createdAt),
  updated_at: seconds(user.updatedAt),
})

/** A user to create. The e-mail address is stored in lower case. */
export const UserCreate = z
  .strictObject({
    name: z.string().trim().min(1).max(128).describe('Name of the user.'),
    email: z
      .string()
      .max(254)
      .trim()
      .toLowerCase()
      .pipe(z.email('This is no e-mail address.'))
      .describe('E-mail address; unique in the organization.'),
    role: z
      .enum(roles)
      .default('member')
      .describe('`owner`, `admin`, `member` or `viewer`: bounds the scopes of the tokens of the user.'),
  })
  .meta({ id: 'UserCreate', description: 'A user to create.' })

/** Fields of a user to change. */
export const UserChange = z
  .strictObject({
    name: UserCreate.shape.name.optional(),
    email: UserCreate.shape.email.optional(),
    role: z
      .enum(roles)
      .optional()
      .describe('The new role. Tokens of the user lose the scopes that it does not allow, at once and for good.'),
  })
  .meta({ id: 'UserChange', description: 'Fields of a user to change. Absent fields stay.' })
