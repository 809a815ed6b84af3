import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { openAccounts } from '../../core/accounts/accounts.ts'
import { type Store, scopes } from '../../core/store/store.ts'

/**
 * Creates the organization `default` and a root token unless they exist. The data directory keeps the token, mode 0600.
 */
export async function createFirstOrganization(
  dataDir: string,
  store: Store,
  accounts: ReturnType<typeof openAccounts>,
) {
  const tokenPath = join(dataDir, 'root-token')
  const own = (await store.organizations.list()).find(({ name }) => name === 'default')
  // A crash between the two writes of a first start must not leave an installation without a usable token.
  if (own && existsSync(tokenPath)) return undefined
  // No rate limit applies to the owner of the machine. Organizations created later get those of their plan.
  const organization =
    own ?? (await accounts.createOrganization({ name: 'default', requestsPerMinute: 0, jobsPerMinute: 0 }))
  const { secret } = await accounts.issue({
    organizationId: organization.id,
    name: 'root',
    scopes: [...scopes],
    expiresAt: null,
  })
  // A crash leaves the whole file or none.
  writeFileSync(`${tokenPath}.new`, `${secret}\n`, { mode: 0o600 })
  renameSync(`${tokenPath}.new`, tokenPath)
  return { organizationId: organization.id, tokenPath, secret }
}
