import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Accounts, statusAt } from '../../core/accounts/accounts.ts'
import { remote } from '../../core/config.ts'
import type { VerifiableToken } from '../../core/store/store.ts'
import { exitCodes } from '../exit-codes.ts'
import { printable } from '../paint.ts'
import type { Terminal } from '../terminal.ts'
import { type SearchResult, secretsIn, walkForSecrets } from './walk.ts'

/** What a found secret is worth: `unknown` is well formed, but not of this server, or there is none to ask. */
export type SecretStatus = 'live' | 'disabled' | 'revoked' | 'expired' | 'unknown'

/** The worth of a token row now, or of its absence. */
export function secretStatusOf(token: VerifiableToken | undefined, now: number): SecretStatus {
  if (!token) return 'unknown'
  const status = statusAt(token, now)
  if (status !== 'active') return status
  return token.organizationStatus === 'active' ? 'live' : 'disabled'
}

/** The longest list in one JSON document; `found` counts all. */
const maxHits = 10_000

interface Hit {
  path: string
  line: number
  hint: string
  worth: SecretStatus
  token_id: string | null
}

/** Looks through the paths and reports each hit as it is found, by its hint only. Ends with 1 when one is live. */
export async function scan(
  terminal: Terminal,
  paths: readonly string[],
  { dataDir, json }: { dataDir: string; json: boolean },
): Promise<void> {
  const installation = await openKnown(dataDir)
  const hits: Hit[] = []
  let found = 0
  let live = 0
  let files = 0
  let unreadable = 0
  const onFile = () => {
    if (++files % 200 === 0) terminal.progress(`${files} files…`)
  }
  try {
    for await (const met of everything(terminal, paths, onFile)) {
      if ('unreadable' in met) {
        unreadable++
        terminal.warn(`${printable(met.path)} was not read: ${met.unreadable}`)
        continue
      }
      const hit = judge(met, installation?.accounts)
      found++
      if (hit.worth === 'live') live++
      if (json && hits.length < maxHits) hits.push(hit)
      terminal.progress('')
      if (!json) terminal.print(`${printable(hit.path)}:${hit.line}: ${hit.hint} ${wordFor(hit, terminal)}`)
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

/** What is met in all paths, in order. */
async function* everything(
  terminal: Terminal,
  paths: readonly string[],
  onFile: () => void,
): AsyncGenerator<SearchResult, void, void> {
  for (const path of paths)
    if (path === '-') yield* secretsIn('(standard input)', terminal.stdin as AsyncIterable<Buffer>)
    else yield* walkForSecrets([path], onFile)
}

function judge(met: Extract<SearchResult, { found: unknown }>, accounts: Accounts | undefined): Hit {
  const token = accounts?.find(met.found.secret)
  return {
    path: met.path,
    line: met.found.line,
    hint: met.found.hint,
    worth: secretStatusOf(token, Date.now()),
    token_id: token?.id ?? null,
  }
}

function wordFor({ worth, token_id }: Hit, { paint }: Terminal): string {
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
  return `${files} ${files === 1 ? 'file' : 'files'}: ${what}.${checked || found === 0 ? '' : ' There is no server of this machine to ask, so none could be checked.'}`
}

/** The store to ask, where there is one. A scan must also work on a machine that has no server. */
async function openKnown(dataDir: string) {
  if (remote() || !existsSync(join(dataDir, 'infer.db'))) return undefined
  const { openInstallation } = await import('../installation.ts')
  return openInstallation(dataDir)
}
