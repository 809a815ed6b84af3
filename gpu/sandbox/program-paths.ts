import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { ResolvedPath } from './mount.ts'
import { findProgram } from './program.ts'
import { resolvedPathsOf } from './resolved-paths.ts'
import { type Guarded, isSafeFolder } from './safe-to-show.ts'
import { sharedLibraries } from './shared-libraries.ts'

/** A script's interpreter may itself be a script. */
const maxInterpreters = 4

/**
 * Returns the paths that a program needs to run, as far as its location shows them: its environment (a virtual
 * environment with its base Python, a conda environment, a folder of shims), else its folder and the library folders
 * beside it; its shared libraries; and the same for its interpreter. For a symbolic link, both the link and its target
 * are included. `program` is a name or a path.
 */
export function programPaths(program: string, path: string, guarded: Guarded): ResolvedPath[] {
  const found: ResolvedPath[] = []
  let next = findProgram(program, path)
  for (let count = 0; next !== undefined && count < maxInterpreters; count++) {
    const names = resolvedPathsOf(next)
    found.push(...names)
    const folders = names.flatMap(({ path: name, real }) => [name, real].flatMap(one => environmentOf(one, guarded)))
    const libraries = sharedLibraries(next)
    folders.push(...libraries.flatMap(library => foldersOf(library, guarded)))
    for (const one of new Set([...libraries, ...folders])) found.push(...resolvedPathsOf(one))
    next = interpreterOf(next, path)
  }
  return found
}

/** The folders that belong to a program at this path. */
function environmentOf(program: string, guarded: Guarded): string[] {
  const folder = dirname(program)
  const above = dirname(folder)
  // Of an environment that is a home, only its programs and libraries are shown.
  const tree = isSafeFolder(above, guarded) ? [above] : [...beside(folder), join(above, 'pyvenv.cfg')]
  // Shims of pyenv, asdf and mise find the real program in the tree above.
  if (basename(folder) === 'shims') return tree
  if (existsSync(join(above, 'conda-meta'))) return tree
  const pythonFolders = virtualEnvironment(join(above, 'pyvenv.cfg'))
  if (pythonFolders) return [...tree, ...pythonFolders.flatMap(home => beside(home))]
  // Release archives and build folders contain the libraries beside the program; llama.cpp loads its backends there.
  return isFolderOfPrograms(folder) ? beside(folder) : [folder].filter(one => isSafeFolder(one, guarded))
}

const isFolderOfPrograms = (folder: string): boolean => basename(folder) === 'bin' || basename(folder) === 'sbin'

/** For a `bin` folder: the folder and the library folders beside it. */
const beside = (folder: string): string[] =>
  isFolderOfPrograms(folder)
    ? [folder, ...['lib', 'lib64', 'libexec', 'include'].map(name => join(dirname(folder), name))]
    : []

/** The folders of a library's names: libraries that it loads at run time are usually there too. */
const foldersOf = (library: string, guarded: Guarded): string[] =>
  resolvedPathsOf(library)
    .flatMap(({ path, real }) => [dirname(path), dirname(real)])
    .filter(folder => isSafeFolder(folder, guarded))

/** The folder of the base Python in a `pyvenv.cfg`; undefined if there is no such file. */
function virtualEnvironment(file: string): string[] | undefined {
  try {
    const text = readFileSync(file, 'utf8')
    return [/^home\s*=\s*(\/.+?)\s*$/m.exec(text)?.[1]].filter(home => home !== undefined)
  } catch {
    return undefined
  }
}

/** The interpreter on the `#!` line of a script. */
function interpreterOf(file: string, path: string): string | undefined {
  const line = /^#!\s*(\S+)(?:\s+(.*\S))?/.exec(startOf(file))
  if (!line) return undefined
  const [, program, rest] = line
  // `#!/usr/bin/env -S python3 -u` names python3.
  const name = basename(program!) === 'env' ? rest?.split(/\s+/).find(word => !word.startsWith('-')) : program
  return name === undefined ? undefined : findProgram(name, path)
}

function startOf(file: string): string {
  try {
    const descriptor = openSync(file, 'r')
    try {
      const buffer = Buffer.alloc(512)
      return buffer.toString('latin1', 0, readSync(descriptor, buffer, 0, buffer.length, 0)).split('\n')[0]!
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return ''
  }
}
