import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Accounts, openAccounts } from '../core/accounts/accounts.ts'
import { openKeys } from '../core/accounts/keys.ts'
import { parseSecret } from '../core/accounts/secret.ts'
import { masterKey } from '../core/config.ts'
import { openLog } from '../core/log.ts'
import { openAdminStore } from '../core/store/sqlite/admin.ts'
import type { Store } from '../core/store/store.ts'
import { refused } from './exit-codes.ts'

/** Organizations and tokens of the server on this machine, reached past it, while it runs or not. */
export interface Installation {
  accounts: Accounts
  close: () => Promise<void>
}

/**
 * Opens the store of a data directory for administration. Refuses when the master key at hand is not the server's:
 * tokens made with another one would never be accepted.
 */
export async function openInstallation(dataDir: string): Promise<Installation> {
  const log = openLog('warn')
  const store = await openAdminStore(dataDir, log)
  try {
    const given = masterKey()
    if (
      given === undefined &&
      !existsSync(join(dataDir, 'master-key')) &&
      (await store.organizations.list()).length > 0
    )
      throw refused(
        'conflict',
        `There is no master key in ${dataDir}: the server was given one. Set the same INFER_MASTER_KEY_FILE or INFER_MASTER_KEY here.`,
      )
    const accounts = openAccounts({ store, keys: openKeys(dataDir, given), log })
    if (knowsAnotherKey(dataDir, store, accounts))
      throw refused(
        'conflict',
        'The master key here is not the one that the server uses. Set the same INFER_MASTER_KEY_FILE or INFER_MASTER_KEY, or unset it if the server has none.',
      )
    return { accounts, close: () => store.close() }
  } catch (cause) {
    await store.close()
    throw cause
  }
}

/**
 * Why the server will refuse tokens that are in the database of a data directory, as a sentence that says what to do;
 * undefined when nothing is known against them. Changes nothing but the schema of an older database.
 */
export async function tokenObstacle(dataDir: string): Promise<string | undefined> {
  const given = masterKey()
  const rootToken = join(dataDir, 'root-token')
  if (given === undefined && !existsSync(join(dataDir, 'master-key')))
    return (
      `There is no master-key in ${dataDir}, and without the one of the installation that was copied the server accepts none of its tokens. ` +
      'Put its master-key and root-token there before the next start, or set its INFER_MASTER_KEY_FILE; otherwise that start makes a new key and a new root token.'
    )
  if (!existsSync(rootToken)) return undefined
  const log = openLog('warn')
  const store = await openAdminStore(dataDir, log)
  try {
    const publicId = parseSecret(readFileSync(rootToken, 'utf8').trim())
    if (publicId === undefined || store.tokens.verify(publicId) === undefined)
      return `The token in ${rootToken} is not one of this database. Put the root-token of the installation that was copied there, or remove the file: the next start then makes a new one.`
    return knowsAnotherKey(dataDir, store, openAccounts({ store, keys: openKeys(dataDir, given), log }))
      ? `The master key of ${dataDir} is not the one that these tokens were made with: the server will accept none of them. Put the master-key of the installation that was copied there.`
      : undefined
  } finally {
    await store.close()
  }
}

/** Whether the root token is in the store but does not verify. */
function knowsAnotherKey(dataDir: string, store: Store, accounts: Accounts): boolean {
  let secret: string
  try {
    secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
  } catch {
    return false
  }
  const publicId = parseSecret(secret)
  return publicId !== undefined && store.tokens.verify(publicId) !== undefined && accounts.find(secret) === undefined
}
