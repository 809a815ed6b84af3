import { createReadStream, existsSync } from 'node:fs'
import { lstat, opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Accounts, statusAt } from '../../core/accounts/accounts.ts'
import { hintOf, parseSecret, secretPattern } from '../../core/accounts/secret.ts'
import { remoteServer } from '../../core/config.ts'
import type { VerifiableToken } from '../../core/store/store.ts'
import { exitCodes } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Status of a found secret. `unknown`: well formed, but not of this server, or there is no server to check it with. */
type SecretStatus = 'live' | 'disabled' | 'revoked' | 'expired' | 'unknown'

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

/** A result of the search: a secret, or a path that could not be read. */
export type SearchResult = { path: string } & ({ found: FoundSecret } | { unreadable: string })

/**
 * Finds every secret in the files at and below the given paths, including binary files and .git. Follows symbolic links
 * only among the given paths, and skips entries that are neither files nor folders. Calls `onFile` for each file.
 */
export async function* walkForSecrets(
  paths: readonly string[],
  onFile: (path: string) => void = () => undefined,
): AsyncGenerator<SearchResult, void, void> {
  for (const path of paths) {
    try {
      yield* walk(path, (await stat(path)).isDirectory() ? 'folder' : 'file', onFile)
    } catch (cause) {
      yield { path, unreadable: (cause as Error).message }
    }
  }
}

async function* walk(
  path: string,
  kind: 'file' | 'folder',
  onFile: (path: string) => void,
): AsyncGenerator<SearchResult, void, void> {
  try {
    if (kind === 'file') {
      onFile(path)
      yield* secretsIn(path, createReadStream(path, { highWaterMark: 1 << 20 }))
      return
    }
    for await (const entry of await opendir(path)) {
      const inner = join(path, entry.name)
      // Some file systems do not report the type of an entry in the listing.
      const facts = entry.isFile() || entry.isDirectory() || entry.isSymbolicLink() ? entry : await lstat(inner)
      if (facts.isDirectory()) yield* walk(inner, 'folder', onFile)
      else if (facts.isFile()) yield* walk(inner, 'file', onFile)
    }
  } catch (cause) {
    yield { path, unreadable: (cause as Error).message }
  }
}

/** Finds every secret in one stream of bytes. */
async function* secretsIn(path: string, bytes: AsyncIterable<Buffer>): AsyncGenerator<SearchResult, void, void> {
  const finder = openSecretFinder()
  for await (const piece of bytes) for (const found of finder.feed(piece)) yield { path, found }
}

/** A found secret and its position. */
interface FoundSecret {
  secret: string
  hint: string
  /** Counted from 1. */
  line: number
}

/** Length of a secret in characters. */
const secretLength = 71

/**
 * Finds well-formed secrets with a correct checksum in bytes of any kind, in chunks of any size and lines of any
 * length. Holds at most one chunk and the length of one secret.
 */
export function openSecretFinder() {
  const pattern = new RegExp(secretPattern.source, 'g')
  let rest = ''
  let line = 1

  return {
    feed(bytes: Buffer): FoundSecret[] {
      // Latin-1 maps every byte to one character, so binary files can be searched as text.
      const text = rest + bytes.toString('latin1')
      const found: FoundSecret[] = []
      let counted = 0
      let keepFrom = Math.max(0, text.length - secretLength + 1)
      pattern.lastIndex = 0
      for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
        const [secret] = match
        if (parseSecret(secret) === undefined) {
          // A secret may begin inside an invalid match.
          pattern.lastIndex = match.index + 1
          continue
        }
        line += newlines(text, counted, match.index)
        counted = match.index
        found.push({ secret, hint: hintOf(secret), line })
        keepFrom = Math.max(keepFrom, match.index + secret.length)
      }
      line += newlines(text, counted, keepFrom)
      rest = text.slice(keepFrom)
      return found
    },
  }
}

function newlines(text: string, from: number, to: number): number {
  let count = 0
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) count++
  return count
}
