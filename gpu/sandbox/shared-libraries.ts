import { existsSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { elfLinks } from './elf.ts'

/** Limits the search time; real engines link fewer libraries. */
const maxFiles = 256

/**
 * Returns the dynamic linker of a program and the libraries that it loads from folders in RPATH and RUNPATH (with
 * `$ORIGIN`) of the program and its libraries. System libraries are left out, because every sandbox shows them.
 * Empty if the file is not an ELF program.
 */
export function sharedLibraries(program: string): string[] {
  const found = new Set<string>()
  const folders = new Set<string>()
  const pending = [program]
  for (let file = pending.shift(); file !== undefined && found.size < maxFiles; file = pending.shift()) {
    const links = elfLinks(file)
    if (!links) continue
    if (links.interpreter !== undefined && isAbsolute(links.interpreter)) found.add(links.interpreter)
    for (const folder of searchedFolders(file, links.searchPaths)) folders.add(folder)
    for (const name of links.needed) {
      const library = located(name, folders)
      if (library === undefined || found.has(library)) continue
      found.add(library)
      pending.push(library)
    }
  }
  return [...found]
}

/** `$ORIGIN` is the folder of the file's real path. */
function searchedFolders(file: string, searchPaths: readonly string[]): string[] {
  if (searchPaths.length === 0) return []
  const origin = dirname(realpathSync(file))
  return searchPaths
    .map(path => join(path.replace(/\$(?:ORIGIN|\{ORIGIN\})/g, origin)))
    .filter(path => isAbsolute(path))
}

/** Finds a library. A library inherits the RPATH of its loader, so every folder seen so far is searched. */
function located(name: string, folders: Iterable<string>): string | undefined {
  if (name.includes('/')) return isAbsolute(name) && existsSync(name) ? name : undefined
  for (const folder of folders) {
    const path = join(folder, name)
    if (existsSync(path)) return path
  }
  return undefined
}
