import { createReadStream } from 'node:fs'
import { lstat, opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hintOf, parseSecret, secretPattern } from '../../core/accounts/secret.ts'

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
export async function* secretsIn(path: string, bytes: AsyncIterable<Buffer>): AsyncGenerator<SearchResult, void, void> {
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
