import { createReadStream } from 'node:fs'
import { lstat, opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type FoundSecret, openSecretFinder } from './secrets.ts'

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
