import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import type { ResolvedPath } from './mount.ts'

/** What there is at the path; undefined when there is nothing or it cannot be reached. */
export function resolvedPathAt(path: string): ResolvedPath | undefined {
  try {
    return { path, real: realpathSync(path), file: !statSync(path).isDirectory() }
  } catch {
    return undefined
  }
}

/** The kernel follows 40 links at most. */
const maxLinks = 40

/**
 * What there is at the path, under its own name and under each name that a link on the way leads to: a program that
 * follows the links one by one finds each of them. Empty when there is nothing. A path that cannot be written on a line
 * is taken to be nothing.
 */
export function resolvedPathsOf(path: string): ResolvedPath[] {
  if (!isAbsolute(path) || /[\0\n]/.test(path)) return []
  const resolved = resolvedPathAt(resolve(path))
  if (!resolved) return []
  const names = [resolved.path]
  for (let next = afterLink(resolved.path); next !== undefined && names.length < maxLinks; next = afterLink(next))
    names.push(next)
  return names.map(name => ({ ...resolved, path: name }))
}

/** The path with its first link replaced by what that link says; undefined when there is no link in it. */
function afterLink(path: string): string | undefined {
  const parts = path.split('/')
  for (let count = 2; count <= parts.length; count++) {
    const at = parts.slice(0, count).join('/')
    if (lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink())
      return resolve(dirname(at), readlinkSync(at), ...parts.slice(count))
  }
  return undefined
}
