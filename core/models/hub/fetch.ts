import { readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { missingFiles } from '../source-files.ts'
import { layoutOf, repositoryIn } from './layout.ts'
import { type PullTools, pullModel } from './pull.ts'
import type { HubReference } from './reference.ts'

/** Where the files of a model are after `fetchModel`. */
export interface Fetched {
  /** The folder of the repository, as in a hub's cache. */
  folder: string
  commit: string | null
  /** Whether they were there before. */
  present: boolean
}

/**
 * Makes the files of a repository available on this machine: they are used where they are at `at`, the folder of the repository in
 * another cache; else where this cache has them, for which no network is needed; else they are downloaded into it, once also
 * if several processes ask at the same time. `names`: paths in the repository; without it, the files that `pullModel` chooses.
 * Rejects as `pullModel` does.
 */
export async function fetchModel(
  reference: HubReference,
  { at, names, ...tools }: PullTools & { at?: string | undefined; names?: readonly string[] | undefined },
): Promise<Fetched> {
  const { repository, revision } = reference
  const own = layoutOf(tools.hub.cache, repository).root
  for (const folder of at === undefined ? [own] : [at, own]) {
    const { snapshot, ref } = layoutOf(dirname(folder), repositoryIn(folder))
    const commit = isCommit(revision) ? revision : await readFile(ref(revision), 'utf8').catch(() => undefined)
    if (commit !== undefined && (await hasFiles(snapshot(commit), names))) return { folder, commit, present: true }
  }
  const { commit } = await pullModel(reference, { ...tools, names })
  return { folder: own, commit, present: false }
}

const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision)

/** Files get their names after they are verified, so those that have a name are whole. */
async function hasFiles(snapshot: string, names: readonly string[] | undefined): Promise<boolean> {
  if (names === undefined) return (await missingFiles(snapshot)) === undefined
  const found = await Promise.all(names.map(name => stat(join(snapshot, name)).catch(() => null)))
  return found.every(one => one?.isFile() === true)
}
