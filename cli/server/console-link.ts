import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Accounts } from '../../core/accounts/accounts.ts'
import type { Sessions } from '../../core/accounts/sessions.ts'
import type { Config } from '../../core/models/config.ts'

/**
 * Returns the address that opens the console signed in as the root token of the data directory, once and within two
 * minutes. Undefined if the console is switched off, or the token is no longer there or not active.
 */
export function consoleLink(
  dataDir: string,
  url: string,
  { accounts, config, sessions }: { accounts: Accounts; config: Pick<Config, 'console'>; sessions: Sessions },
): string | undefined {
  if (!config.console) return undefined
  try {
    const { tokenId } = accounts.authenticate(readFileSync(join(dataDir, 'root-token'), 'utf8').trim())
    return `${url.replace(/\/+$/, '')}/console/sign-in#code=${sessions.createCode(tokenId).code}`
  } catch {
    return undefined
  }
}
