import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import { access, constants, opendir, readFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { jsonOf } from '../../core/json.ts'
import { optionalNames, optionalText } from '../../core/optional-file.ts'
import { isInFolder, type ResolvedPath } from './mount.ts'
import { findProgram } from './program.ts'
import { resolvedPathsOf, resolvedPathsOfAll } from './resolved-paths.ts'
import { sharedLibraries } from './shared-libraries.ts'

/** A script's interpreter may itself be a script. */
const maxInterpreters = 4

/**
 * Returns the paths that a program needs to run, as far as its location shows them: its environment (a virtual
 * environment with its base Python, a conda environment, a folder of shims), else its folder and the library folders
 * beside it; its shared libraries; and the same for its interpreter. For a symbolic link, both the link and its target
 * are included. `program` is a name or a path.
 */
export async function programPaths(program: string, path: string, guarded: Guarded): Promise<ResolvedPath[]> {
  const found: ResolvedPath[] = []
  let next = findProgram(program, path)
  for (let count = 0; next !== undefined && count < maxInterpreters; count++) {
    const names = await resolvedPathsOf(next)
    const libraries = sharedLibraries(next)
    const programs = names.flatMap(({ path: name, real }) => [name, real])
    const folders = [
      ...(await Array.fromAsync(programs, one => environmentOf(one, guarded))).flat(),
      ...foldersOf(await resolvedPathsOfAll(libraries), guarded),
    ]
    found.push(...names, ...(await resolvedPathsOfAll(new Set([...libraries, ...folders]))))
    next = interpreterOf(next, path)
  }
  return found
}

/** The folders that belong to a program at this path. */
async function environmentOf(program: string, guarded: Guarded): Promise<string[]> {
  const folder = dirname(program)
  const above = dirname(folder)
  // Of an environment that is a home, only its programs and libraries are shown.
  const tree = isSafeFolder(above, guarded) ? [above] : [...beside(folder), join(above, 'pyvenv.cfg')]
  // Shims of pyenv, asdf and mise find the real program in the tree above.
  if (basename(folder) === 'shims') return tree
  if (existsSync(join(above, 'conda-meta'))) return [...tree, ...(await sourceFolders(above, guarded))]
  const pythonFolders = virtualEnvironment(join(above, 'pyvenv.cfg'))
  if (pythonFolders)
    return [...tree, ...pythonFolders.flatMap(home => beside(home)), ...(await sourceFolders(above, guarded))]
  // Release archives and build folders contain the libraries beside the program; llama.cpp loads its backends there.
  return isFolderOfPrograms(folder) ? beside(folder) : [folder].filter(one => isSafeFolder(one, guarded))
}

const isFolderOfPrograms = (folder: string): boolean => basename(folder) === 'bin' || basename(folder) === 'sbin'

/** For a `bin` folder: the folder and the library folders beside it. */
const beside = (folder: string): string[] =>
  isFolderOfPrograms(folder)
    ? [folder, ...['lib', 'lib64', 'libexec', 'include'].map(name => join(dirname(folder), name))]
    : []

/** The folders of libraries: those that they load at run time are usually there too. */
const foldersOf = (libraries: readonly ResolvedPath[], guarded: Guarded): string[] =>
  libraries.flatMap(({ path, real }) => [dirname(path), dirname(real)]).filter(folder => isSafeFolder(folder, guarded))

/** The folder of the base Python in a `pyvenv.cfg`; undefined if there is no such file. */
function virtualEnvironment(file: string): string[] | undefined {
  const text = optionalText(file)
  return text === undefined ? undefined : [/^home\s*=\s*(\/.+?)\s*$/m.exec(text)?.[1] ?? []].flat()
}

/** The folders of sources that an environment imports packages from: what `pip install --editable` writes down. */
async function sourceFolders(environment: string, guarded: Guarded): Promise<string[]> {
  const packages = optionalNames(join(environment, 'lib'))
    .filter(name => name.startsWith('python'))
    .map(name => join(environment, 'lib', name, 'site-packages'))
  const own = await Array.fromAsync(packages, async folder => {
    const names = await resolvedPathsOf(folder)
    return names.some(({ path, real }) => mayWrite(path, guarded) || mayWrite(real, guarded)) ? [] : [folder]
  })
  return own
    .flat()
    .flatMap(folder => optionalNames(folder).map(name => join(folder, name)))
    .flatMap(file => {
      if (file.endsWith('.pth')) return optionalText(file)?.match(/^\/.*\S/gm) ?? []
      if (!/__editable__.*_finder\.py$/.test(file)) return []
      return Array.from(optionalText(file)?.matchAll(/'(\/[^'\n]+)'/g) ?? [], ([, path]) => path!)
    })
    .filter(path => isSafeFolder(path, guarded))
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

/** Variables that contain one path or several, such as those of libraries and certificates. */
const pathVariables =
  /^(LD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH|ROCM_PATH|SSL_CERT_FILE|SSL_CERT_DIR|VK_\w*(FILES|FILENAMES|PATH))$/

/** A path, and for the manifest of a Vulkan driver or layer the library that it names. */
async function withLibrary(path: string): Promise<string[]> {
  const manifest = path.endsWith('.json') ? jsonOf(await readFile(path, 'utf8').catch(() => '')) : undefined
  const { ICD, layer } = (manifest ?? {}) as { ICD?: Partial<Library>; layer?: Partial<Library> }
  const library = ICD?.library_path ?? layer?.library_path
  // A mere name is looked for in the folders of the system.
  return typeof library === 'string' && library.includes('/') ? [path, resolve(dirname(path), library)] : [path]
}
interface Library {
  library_path: unknown
}

/**
 * Returns the paths in an engine's arguments and environment: the administrator configured them for the engine to read.
 * For a script its folder is included. Paths in the data directory, and parents of the data directory or of a home, are
 * left out: they need an entry in `sandbox_read`.
 */
export async function commandPaths(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  { configuredVariables, ...guarded }: { configuredVariables: readonly string[] } & Guarded,
): Promise<ResolvedPath[]> {
  const words = argv.slice(1).flatMap(word => [word, word.slice(word.indexOf('=') + 1)])
  const variables = Object.entries(env).flatMap(([name, value]) =>
    pathVariables.test(name) || configuredVariables.includes(name) ? value.split(':') : [],
  )
  const values = (await Array.fromAsync(variables, withLibrary)).flat()
  const found = await Array.fromAsync(new Set([...words, ...values]), async word => {
    const shown = (await ownPathsOf(word, guarded)).filter(
      ({ path, real }) => isSafeToShow(path, guarded) && isSafeToShow(real, guarded),
    )
    const [first] = shown
    if (!first?.file || !(await isScript(first.real))) return shown
    const folders = [first.path, first.real].map(path => dirname(path)).filter(folder => isSafeFolder(folder, guarded))
    return [...shown, ...(await resolvedPathsOfAll(folders))]
  })
  return found.flat()
}

/** Whether a file is a script, which may load other files of its folder. */
async function isScript(file: string): Promise<boolean> {
  if (/\.(py|sh|[cm]?[jt]s|rb|pl|lua)$/.test(file)) return true
  if (/\.(gguf|bin|safetensors|ya?ml|json|txt)$/.test(file)) return false
  return await access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
}

/** Folders that no engine may see merely because its command refers to them. */
export interface Guarded {
  dataDir: string
  /** Real paths. */
  homes: readonly string[]
  /**
   * All names of the paths that the engine may write. What files and links in them name is not shown: the engine could
   * name the keys of a user, and read them after its next start.
   */
  writable: readonly string[]
}

const mayWrite = (path: string, { writable }: Guarded): boolean => writable.some(one => isInFolder(path, one))

/** Resolves a path; empty if a link that the engine may have made leads elsewhere. */
export async function ownPathsOf(path: string, guarded: Guarded): Promise<ResolvedPath[]> {
  const found = await resolvedPathsOf(path)
  return found.some(one => mayWrite(one.path, guarded) && !mayWrite(one.real, guarded)) ? [] : found
}

/** Folders with files of many programs or users. */
const sharedFolders = ['/', '/tmp', '/var', '/var/tmp', '/var/lib', '/etc', '/home', '/run']

/**
 * Where links in these folders lead, as far as engines may see it: models are often kept on another disk, such as
 * `ComfyUI/models/checkpoints -> /data/checkpoints`. Links in folders below them are not followed.
 */
export async function linkedPaths(folders: readonly string[], guarded: Guarded): Promise<string[]> {
  const links = (await Array.fromAsync(folders, linksIn)).flat()
  const safe = await Array.fromAsync(links, async path => {
    const names = await resolvedPathsOf(path)
    return names.every(({ real }) => isSafeFolder(real, guarded)) ? [path] : []
  })
  return safe.flat()
}

/** Further entries of a folder are not looked at: a folder in `sandbox_read` may have millions. */
const maxEntries = 2_000

async function linksIn(folder: string): Promise<string[]> {
  const links: string[] = []
  try {
    let count = 0
    for await (const entry of await opendir(folder, { bufferSize: maxEntries })) {
      if (entry.isSymbolicLink()) links.push(join(folder, entry.name))
      if (++count === maxEntries) break
    }
  } catch {
    // It is a file, or it cannot be read.
  }
  return links
}

/**
 * Whether an engine may see a path because its command refers to it. False for paths in the data directory, and for
 * parents of the data directory or of a home: they need an entry in `sandbox_read`. Pure.
 */
const isSafeToShow = (path: string, { dataDir, homes }: Guarded): boolean =>
  isAbsolute(path) &&
  !sharedFolders.includes(path) &&
  !['/proc', '/sys', '/dev', dataDir].some(folder => isInFolder(path, folder)) &&
  ![dataDir, ...homes].some(hidden => isInFolder(hidden, path))

/** The same for the folder of such a file, which additionally must not be another user's home. Pure. */
const isSafeFolder = (folder: string, guarded: Guarded): boolean =>
  isSafeToShow(folder, guarded) && dirname(folder) !== '/home' && folder !== '/root'
