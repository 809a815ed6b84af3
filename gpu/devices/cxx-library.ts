import { readFileSync } from 'node:fs'
import { optionalText } from '../../core/optional-file.ts'

const versionMark = Buffer.from('\0GLIBCXX_3.4.')

/**
 * Returns n of the newest version GLIBCXX_3.4.n that a C++ library has; null if it names none. Searches bytes: V8 keeps
 * the last text that a pattern was applied to, and this one would have two megabytes. Pure.
 */
export function cxxVersionOf(library: Buffer): number | null {
  let newest: number | null = null
  for (let at = library.indexOf(versionMark); at >= 0; at = library.indexOf(versionMark, at)) {
    at += versionMark.length
    const version = Number.parseInt(library.toString('latin1', at, at + 4), 10)
    if (!Number.isNaN(version)) newest = Math.max(newest ?? 0, version)
  }
  return newest
}

/** The same of the library that this process has loaded; null if that is not known. `maps`: the list of its files. */
export function readCxxLibrary(maps = '/proc/self/maps'): number | null {
  const path = /\s(\/\S*\/libstdc\+\+\.so\S*)$/m.exec(optionalText(maps) ?? '')?.[1]
  if (path === undefined) return null
  try {
    return cxxVersionOf(readFileSync(path))
  } catch {
    return null
  }
}
