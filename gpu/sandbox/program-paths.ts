import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { findProgram } from '../launcher/program.ts'
import type { ResolvedPath } from './mount.ts'
import { resolvedPathsOf } from './resolved-paths.ts'
import { type Guarded, isSafeFolder } from './safe-to-show.ts'
import { sharedLibraries } from './shared-libraries.ts'

/** A script may be run by a script. */
const maxInterpreters = 4

/**
 * What a program needs to run, as far as that follows from where it lies: the environment that it belongs to (a virtual
 * environment with the Python that it was made from, a conda environment, a folder of shims), else its folder with the
 * folders of libraries beside it, and the shared libraries that it is linked with; and the same for the program that
 * interprets it. For a program that is a link, both where the link lies and where it leads to. `program` is a name or a
 * path.
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
  // Shims of pyenv, asdf and mise look for the real program in their own tree.
  if (basename(folder) === 'shims') return [above]
  if (existsSync(join(above, 'conda-meta'))) return [above]
  const made = virtualEnvironment(join(above, 'pyvenv.cfg'))
  if (made) return [above, ...made.flatMap(home => beside(home))]
  // Release archives and build folders have the libraries beside the program; llama.cpp loads its backends from there.
  return isFolderOfPrograms(folder) ? beside(folder) : [folder].filter(one => isSafeFolder(one, guarded))
}

const isFolderOfPrograms = (folder: string): boolean => basename(folder) === 'bin' || basename(folder) === 'sbin'

/** Programs and libraries beside a folder of programs. */
const beside = (folder: string): string[] =>
  isFolderOfPrograms(folder)
    ? [folder, ...['lib', 'lib64', 'libexec', 'include'].map(name => join(dirname(folder), name))]
    : []

/** The folders in which a library lies under its names: what it loads when it runs mostly lies there too. */
const foldersOf = (library: string, guarded: Guarded): string[] =>
  resolvedPathsOf(library)
    .flatMap(({ path, real }) => [dirname(path), dirname(real)])
    .filter(folder => isSafeFolder(folder, guarded))

/** Where the Python of a virtual environment lies, by its configuration; undefined when it is none. */
function virtualEnvironment(file: string): string[] | undefined {
  try {
    const text = readFileSync(file, 'utf8')
    return [/^home\s*=\s*(\/.+?)\s*$/m.exec(text)?.[1]].filter(home => home !== undefined)
  } catch {
    return undefined
  }
}

/** The program that a script names on its first line. */
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
