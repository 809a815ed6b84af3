import { readdir, readlink, stat } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { partsOf } from '../gguf-parts.ts'
import { repositoryIn } from './layout.ts'

/** Files of one commit of a repository, as a hub's cache has them. */
export interface SnapshotFiles {
  /** `owner/name`. */
  repository: string
  commit: string
  /** `name`: its path in the repository; `hash`: the name of its blob. */
  files: readonly { name: string; bytes: number; hash: string }[]
}

const snapshotPath = /^(\/.*?\/models--[^/]+)\/snapshots\/([0-9a-f]{40})(?:\/(.+))?$/

/** The folder of a repository in a hub's cache, the commit and the file of a path; undefined for any other path. Pure. */
export function snapshotOf(path: string): { folder: string; commit: string; file: string | null } | undefined {
  const [, folder, commit, file] = snapshotPath.exec(path) ?? []
  return folder === undefined || commit === undefined ? undefined : { folder, commit, file: file ?? null }
}

/**
 * Returns the files of a snapshot that these words of a command name: files, all parts of a model in parts, or the whole
 * snapshot. Undefined where they name none of `folder`, or where the cache does not say by its links what the files are.
 */
export async function snapshotFilesOf(folder: string, words: readonly string[]): Promise<SnapshotFiles | undefined> {
  const named = words.flatMap(word => {
    const found = snapshotOf(word)
    return found?.folder === folder ? [found] : []
  })
  const commit = named[0]?.commit
  if (commit === undefined || named.some(one => one.commit !== commit)) return undefined
  const snapshot = join(folder, 'snapshots', commit)
  const names = named.some(({ file }) => file === null)
    ? await filesIn(snapshot)
    : [...new Set(named.flatMap(({ file }) => partsOf(file!)))]
  const files = await Promise.all(names.map(name => factsOf(snapshot, name)))
  const known = files.filter(one => one !== undefined)
  if (known.length < names.length || names.length === 0) return undefined
  return {
    repository: repositoryIn(folder),
    commit,
    files: known,
  }
}

async function filesIn(snapshot: string): Promise<string[]> {
  const entries = await readdir(snapshot, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .flatMap(entry => (entry.isDirectory() ? [] : [relative(snapshot, join(entry.parentPath, entry.name))]))
    .toSorted()
}

async function factsOf(snapshot: string, name: string): Promise<SnapshotFiles['files'][number] | undefined> {
  const path = join(snapshot, name)
  const [about, link] = await Promise.all([stat(path).catch(() => null), readlink(path).catch(() => '')])
  const hash = basename(link)
  return about?.isFile() && /^([0-9a-f]{64}|[0-9a-f]{40})$/.test(hash) ? { name, bytes: about.size, hash } : undefined
}
