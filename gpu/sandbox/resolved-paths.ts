import { readlink, realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, resolve } from 'node:path'
import type { ResolvedPath } from './mount.ts'

/** Resolves a path; undefined if nothing is there or it is inaccessible. */
export async function resolvedPathAt(path: string): Promise<ResolvedPath | undefined> {
  try {
    return { path, real: await realpath(path), file: !(await stat(path)).isDirectory() }
  } catch {
    return undefined
  }
}

/** The kernel follows at most 40 links. */
const maxLinks = 40

/**
 * Resolves a path and also returns each intermediate path of its symbolic links, because a program may follow the links
 * one by one. Empty if nothing is there, or if the path is relative or contains a newline or NUL.
 */
export async function resolvedPathsOf(path: string): Promise<ResolvedPath[]> {
  if (!isAbsolute(path) || /[\0\n]/.test(path)) return []
  const resolved = await resolvedPathAt(resolve(path))
  if (!resolved) return []
  const names = [resolved.path]
  let next = await afterLink(resolved.path)
  while (next !== undefined && names.length < maxLinks) {
    names.push(next)
    next = await afterLink(next)
  }
  return names.map(name => ({ ...resolved, path: name }))
}

/**
 * The same of several paths, one after the other: a network mount that does not answer then holds one of the few threads
 * that read files for the whole server, and not all of them.
 */
export const resolvedPathsOfAll = async (paths: Iterable<string>): Promise<ResolvedPath[]> =>
  (await Array.fromAsync(paths, path => resolvedPathsOf(path))).flat()

/** The path with its first symbolic link replaced by the target; undefined if it contains no link. */
async function afterLink(path: string): Promise<string | undefined> {
  const parts = path.split('/')
  for (let count = 2; count <= parts.length; count++) {
    const at = parts.slice(0, count).join('/')
    const target = await readlink(at).catch(() => undefined)
    if (target !== undefined) return resolve(dirname(at), target, ...parts.slice(count))
  }
  return undefined
}
