import { existsSync, readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { type Accounts, openAccounts } from '../../core/accounts/accounts.ts'
import { type Keys, openStoredKeys } from '../../core/accounts/keys.ts'
import { type Organizations, openOrganizations } from '../../core/accounts/organizations.ts'
import { openPlans, type Plans } from '../../core/accounts/plans.ts'
import { parseSecret } from '../../core/accounts/secret.ts'
import { masterKey } from '../../core/config.ts'
import { type Log, openLog } from '../../core/log.ts'
import { type Config, readConfig } from '../../core/models/config.ts'
import { openAdminStore } from '../../core/store/sqlite/admin.ts'
import { type Actor, type Store, theServer } from '../../core/store/store.ts'
import { refused } from '../terminal/exit-codes.ts'

/** The organizations in a data directory, with or without a running server. */
export interface Directory {
  organizations: Organizations
  store: Store
  /** Reads infer.yaml when it is first needed: most commands work although it is invalid. */
  settings: () => Settings
  /** The user of the operating system, for the audit log. */
  actor: Actor
  close: () => Promise<void>
}

/** A data directory with the keys of its server, for tokens, users and webhooks. */
export interface Installation extends Directory {
  accounts: Accounts
  keys: Keys
}

interface Settings {
  config: Config
  plans: Plans
}

/** Opens the store of a data directory for administration. Needs no master key and creates none. */
export async function openDirectory(dataDir: string): Promise<Directory> {
  const log = openLog('warn')
  const store = await openAdminStore(dataDir, log)
  let read: Settings | undefined
  const settings = () => (read ??= readSettings(dataDir, log))
  return {
    organizations: openOrganizations({ store, log, planNames: () => settings().plans.names() }),
    store,
    settings,
    actor: { ...theServer, kind: 'command_line', osUser: osUser() },
    close: () => store.close(),
  }
}

/**
 * Opens the store of a data directory and the keys. Throws when the available master key is not the server's: the server
 * would never accept tokens created with another key.
 */
export async function openInstallation(dataDir: string): Promise<Installation> {
  const directory = await openDirectory(dataDir)
  const { store } = directory
  try {
    const given = masterKey()
    if (
      given === undefined &&
      !existsSync(join(dataDir, 'master-key')) &&
      (await store.organizations.list()).length > 0
    )
      throw refused(
        'conflict',
        `There is no master key in ${dataDir}, because the server gets it from the environment. Set the same INFER_MASTER_KEY_FILE or INFER_MASTER_KEY here.`,
      )
    const keys = openStoredKeys(dataDir, given)
    const accounts = openAccounts({ store, keys, log: openLog('warn') })
    if (usesAnotherKey(dataDir, store, accounts))
      throw refused(
        'conflict',
        'The master key here differs from the key of the server. Set the same INFER_MASTER_KEY_FILE or INFER_MASTER_KEY, or unset them if the server does not use them.',
      )
    return { ...directory, accounts, keys }
  } catch (cause) {
    await directory.close()
    throw cause
  }
}

function readSettings(dataDir: string, log: Log): Settings {
  const config = readConfig(join(dataDir, 'infer.yaml'), false)
  return { config, plans: openPlans({ configured: config.plans, log }) }
}

/** The name of the user who runs this process; null if the system has no name for him. */
function osUser(): string | null {
  try {
    return userInfo().username
  } catch {
    return null
  }
}

/**
 * Returns why the server will refuse the tokens in the database of a data directory, and what to do; undefined when no
 * reason is known. Changes nothing but the schema of an older database.
 */
export async function tokenObstacle(dataDir: string): Promise<string | undefined> {
  const given = masterKey()
  const rootToken = join(dataDir, 'root-token')
  if (given === undefined && !existsSync(join(dataDir, 'master-key')))
    return (
      `There is no master-key in ${dataDir}. Without the master key of the original installation the server accepts none of its tokens. ` +
      'Copy its master-key and root-token there before the next start, or set its INFER_MASTER_KEY_FILE; otherwise the next start creates a new key and a new root token.'
    )
  if (!existsSync(rootToken)) return undefined
  const log = openLog('warn')
  const store = await openAdminStore(dataDir, log)
  try {
    const publicId = parseSecret(readFileSync(rootToken, 'utf8').trim())
    if (publicId === undefined || store.tokens.verify(publicId) === undefined)
      return `The token in ${rootToken} is not in this database. Copy the root-token of the original installation there, or remove the file: the next start then creates a new one.`
    return usesAnotherKey(dataDir, store, openAccounts({ store, keys: openStoredKeys(dataDir, given), log }))
      ? `The master key of ${dataDir} did not create these tokens, so the server will accept none of them. Copy the master-key of the original installation there.`
      : undefined
  } finally {
    await store.close()
  }
}

/** Whether the root token is in the store but does not verify. */
function usesAnotherKey(dataDir: string, store: Store, accounts: Accounts): boolean {
  let secret: string
  try {
    secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
  } catch {
    return false
  }
  const publicId = parseSecret(secret)
  return publicId !== undefined && store.tokens.verify(publicId) !== undefined && accounts.find(secret) === undefined
}
