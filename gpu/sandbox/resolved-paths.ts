import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import type { ResolvedPath } from './mount.ts'

/** Resolves a path; undefined if nothing is there or it is inaccessible. */
export function resolvedPathAt(path: string): ResolvedPath | undefined {
  try {
    return { path, real: realpathSync(path), file: !statSync(path).isDirectory() }
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
export function resolvedPathsOf(path: string): ResolvedPath[] {
  if (!isAbsolute(path) || /[\0\n]/.test(path)) return []
  const resolved = resolvedPathAt(resolve(path))
  if (!resolved) return []
  const names = [resolved.path]
  for (let next = afterLink(resolved.path); next !== undefined && names.length < maxLinks; next = afterLink(next))
    names.push(next)
  return names.map(name => ({ ...resolved, path: name }))
}

/** The path with its first symbolic link replaced by the target; undefined if it contains no link. */
function afterLink(path: string): string | undefined {
  const parts = path.split('/')
  for (let count = 2; count <= parts.length; count++) {
    const at = parts.slice(0, count).join('/')
    if (lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink())
      return resolve(dirname(at), readlinkSync(at), ...parts.slice(count))
  }
  return undefined
}
