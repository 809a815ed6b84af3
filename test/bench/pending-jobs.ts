import { mkdirSync } from 'node:fs'
import { openAccounts } from '../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../core/accounts/keys.ts'
import { newId } from '../../core/ids.ts'
import { openLog } from '../../core/log.ts'
import { openAdminStore } from '../../core/store/sqlite/admin.ts'
import { scopes } from '../../core/store/store.ts'

/**
 * Creates an organization and stores `count` pending jobs of a model `held`, before a server starts on the data
 * directory. Returns a token of the organization.
 */
export async function storePendingJobs(dataDir: string, count: number): Promise<string> {
  const log = openLog('error')
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const store = await openAdminStore(dataDir, log)
  try {
    const accounts = openAccounts({ store, keys: openStoredKeys(dataDir), log })
    const { id } = await accounts.createOrganization({ name: 'bench', requestsPerMinute: 0, jobsPerMinute: 0 })
    const { token, secret } = await accounts.issue({ organizationId: id, name: 'bench', scopes: [...scopes] })
    const inputs = JSON.stringify({ input: 'x'.repeat(300) })
    let left = count
    const submitter = async () => {
      while (left-- > 0) {
        const at = Date.now()
        await store.jobs.submit({
          id: newId('job'),
          organizationId: id,
          tokenId: token.id,
          task: 'std/embeddings',
          modelId: 'held',
          slug: null,
          inputs,
          priority: 0,
          rank: at * 1000,
          maxAttempts: 3,
          startBy: null,
          timeoutMs: null,
          retentionMs: null,
          notBefore: at,
          createdAt: at,
          metadata: null,
          idempotency: null,
        })
      }
    }
    await Promise.all(Array.from({ length: 256 }, submitter))
    return secret
  } finally {
    await store.close()
  }
}
