import { existsSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { elfLinks } from './elf.ts'

/** No program of an engine has so many; bounds the time where links lead to whole trees of libraries. */
const maxFiles = 256

/**
 * Returns the files that the dynamic linker loads for a program from the folders that the program and its libraries
 * name (RPATH, RUNPATH, `$ORIGIN`), and the dynamic linker itself. Empty for what is no ELF program. Libraries of the
 * system are left out: they are found without such a folder.
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

/** `$ORIGIN` is the folder in which the file lies, with every link followed. */
function searchedFolders(file: string, searchPaths: readonly string[]): string[] {
  if (searchPaths.length === 0) return []
  const origin = dirname(realpathSync(file))
  return searchPaths
    .map(path => join(path.replace(/\$(?:ORIGIN|\{ORIGIN\})/g, origin)))
    .filter(path => isAbsolute(path))
}

/** A library inherits the RPATH of what loads it, so every folder seen so far is looked into. */
function located(name: string, folders: Iterable<string>): string | undefined {
  if (name.includes('/')) return isAbsolute(name) && existsSync(name) ? name : undefined
  for (const folder of folders) {
    const path = join(folder, name)
    if (existsSync(path)) return path
  }
  return undefined
}
