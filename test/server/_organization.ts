import { openAccounts, type TokenOptions } from '../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../core/accounts/keys.ts'
import { newId } from '../../core/ids.ts'
import { openLog } from '../../core/log.ts'
import { openAdminStore } from '../../core/store/sqlite/admin.ts'
import { type NewOrganization, type OrganizationLimits, scopes } from '../../core/store/store.ts'
import type { TestApp } from '../_app.ts'

/** An organization beside the server's default one, created as by the command line, with a token. */
export async function makeOrganization(
  app: TestApp,
  {
    requestsPerMinute = 0,
    jobsPerMinute = 0,
    monthlySpendLimit = null,
    organization = {},
    ...token
  }: {
    requestsPerMinute?: number
    jobsPerMinute?: number
    monthlySpendLimit?: number | null
    organization?: Partial<Pick<NewOrganization, 'plan' | 'region' | keyof OrganizationLimits>>
  } & Partial<TokenOptions> = {},
): Promise<{ organizationId: string; secret: string; tokenId: string; name: string }> {
  const log = openLog('error')
  const store = await openAdminStore(app.dataDir, log)
  try {
    const accounts = openAccounts({ store, keys: openStoredKeys(app.dataDir), log })
    const name = newId('org')
    const figures = { requestsPerMinute, jobsPerMinute, monthlySpendLimit, ...organization }
    const { id } = await accounts.createOrganization({ name, ...figures })
    const issued = await accounts.issue({ name: 'first', scopes: [...scopes], ...token, organizationId: id })
    return { organizationId: id, secret: issued.secret, tokenId: issued.token.id, name }
  } finally {
    await store.close()
  }
}
