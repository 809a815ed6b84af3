import { readFileSync } from 'node:fs'
import { optionalText } from '../../core/optional-file.ts'

/** Returns n of the newest version GLIBCXX_3.4.n that a C++ library has; null if it names none. Pure. */
export function cxxVersionOf(library: Buffer): number | null {
  const versions = [...library.toString('latin1').matchAll(/\0GLIBCXX_3\.4\.(\d+)/g)].map(([, version]) =>
    Number(version),
  )
  return versions.length > 0 ? Math.max(...versions) : null
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
