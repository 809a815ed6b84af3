import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Accounts, statusAt } from '../../core/accounts/accounts.ts'
import { remoteServer } from '../../core/config.ts'
import type { VerifiableToken } from '../../core/store/store.ts'
import { exitCodes } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/paint.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type SearchResult, secretsIn, walkForSecrets } from './walk.ts'

/** Status of a found secret. `unknown`: well formed, but not of this server, or there is no server to check it with. */
export type SecretStatus = 'live' | 'disabled' | 'revoked' | 'expired' | 'unknown'

/** Returns the status of a token now; `unknown` without a token. */
export function secretStatusOf(token: VerifiableToken | undefined, now: number): SecretStatus {
  if (!token) return 'unknown'
  const status = statusAt(token, now)
  if (status !== 'active') return status
  return token.organizationStatus === 'active' ? 'live' : 'disabled'
}

/** Maximum number of hits in the JSON document; `found` counts all. */
const maxHits = 10_000

interface Hit {
  path: string
  line: number
  hint: string
  worth: SecretStatus
  token_id: string | null
}

/** Scans the paths and prints each hit as it is found, by its hint only. Sets exit code 1 when a secret is live. */
export async function scan(
  terminal: Terminal,
  paths: readonly string[],
  { dataDir, json }: { dataDir: string; json: boolean },
): Promise<void> {
  const installation = await openLocalInstallation(dataDir)
  const hits: Hit[] = []
  let found = 0
  let live = 0
  let files = 0
  let unreadable = 0
  const onFile = () => {
    if (++files % 200 === 0) terminal.progress(`${files} files…`)
  }
  try {
    for await (const result of resultsIn(terminal, paths, onFile)) {
      if ('unreadable' in result) {
        unreadable++
        terminal.warn(`${printable(result.path)} could not be read: ${result.unreadable}`)
        continue
      }
      const hit = hitOf(result, installation?.accounts)
      found++
      if (hit.worth === 'live') live++
      if (json && hits.length < maxHits) hits.push(hit)
      terminal.progress('')
      if (!json) terminal.print(`${printable(hit.path)}:${hit.line}: ${hit.hint} ${statusText(hit, terminal)}`)
    }
  } finally {
    terminal.progress('')
    await installation?.close()
  }
  const checked = installation !== undefined
  if (json) terminal.json({ hits, found, live, files, unreadable, checked })
  else terminal.remark(summary({ files, found, live, checked }))
  if (live > 0) terminal.setExitCode(exitCodes.failed)
  else if (unreadable > 0) terminal.setExitCode(exitCodes.io)
}

/** Yields the results of all paths, in order. */
async function* resultsIn(
  terminal: Terminal,
  paths: readonly string[],
  onFile: () => void,
): AsyncGenerator<SearchResult, void, void> {
  for (const path of paths)
    if (path === '-') yield* secretsIn('(standard input)', terminal.stdin as AsyncIterable<Buffer>)
    else yield* walkForSecrets([path], onFile)
}

function hitOf(result: Extract<SearchResult, { found: unknown }>, accounts: Accounts | undefined): Hit {
  const token = accounts?.find(result.found.secret)
  return {
    path: result.path,
    line: result.found.line,
    hint: result.found.hint,
    worth: secretStatusOf(token, Date.now()),
    token_id: token?.id ?? null,
  }
}

function statusText({ worth, token_id }: Hit, { paint }: Terminal): string {
  if (worth === 'live') return paint.bad(`live: revoke it with "infer token revoke ${token_id}"`)
  return worth === 'unknown' ? 'well formed, not a token of this server' : `${worth} (${token_id})`
}

function summary({
  files,
  found,
  live,
  checked,
}: {
  files: number
  found: number
  live: number
  checked: boolean
}): string {
  const what = found === 0 ? 'no secret' : `${found} ${found === 1 ? 'secret' : 'secrets'}, ${live} live`
  return `${files} ${files === 1 ? 'file' : 'files'}: ${what}.${checked || found === 0 ? '' : ' There is no installation on this machine, so they could not be checked.'}`
}

/** Opens the local installation if there is one. A scan must also work on a machine without a server. */
async function openLocalInstallation(dataDir: string) {
  if (remoteServer() || !existsSync(join(dataDir, 'infer.db'))) return undefined
  const { openInstallation } = await import('../accounts/installation.ts')
  return openInstallation(dataDir)
}
