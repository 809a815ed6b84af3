import { mkdirSync, realpathSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { homeDirectory } from '../../core/base-directory.ts'
import { effectiveLevel, type SandboxRequirements, type SandboxSupport } from './level.ts'
import { coverOf } from './mount.ts'
import { commandPaths, linkedPaths, ownPathsOf, programPaths } from './program-paths.ts'
import { resolvedPathAt, resolvedPathsOfAll } from './resolved-paths.ts'
import { sandboxWrapper } from './sandbox-wrapper.ts'
import { readSystem } from './system.ts'
import { viewOf } from './view.ts'
import type { Wrapper } from './wrapper.ts'

export interface SandboxOptions {
  /** Real path of the data directory. */
  dataDir: string
  support: SandboxSupport
  /** Files with secrets outside of the data directory: the configuration, private keys of certificates. */
  secrets?: readonly string[]
  /** The server's environment. */
  host: Readonly<Record<string, string | undefined>>
}

export interface SandboxedLaunch {
  requirements: SandboxRequirements
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  /** Names of variables set by the preset or by the model's configuration. */
  configuredVariables: readonly string[]
  /** The engine's folders: home, results, socket. */
  write: readonly string[]
  /** Folders with files of requests. */
  read: readonly string[]
}

interface Sandboxed {
  wrapper: Wrapper
  level: 'strict' | 'files'
  /** Whether the engine sees this absolute path of the machine. */
  isVisible: (path: string) => boolean
}

export async function openSandbox({ dataDir, support, secrets = [], host }: SandboxOptions) {
  const root = join(dataDir, 'run', 'root')
  mkdirSync(root, { recursive: true, mode: 0o700 })
  const homes = (await Array.fromAsync([host.HOME, homeDirectory({})], realHome)).flat()

  /** Returns the command that starts the engine in its sandbox; undefined if it runs without one. */
  async function wrapperFor(launch: SandboxedLaunch): Promise<Sandboxed | undefined> {
    const { requirements, argv, env, configuredVariables, write, read } = launch
    const { level } = effectiveLevel(requirements.level, support)
    if (level === 'none' || support.tool === null) return undefined
    const caches = await Array.fromAsync(codeCaches, name => createdCache(env[name]))
    const writable = await resolvedPathsOfAll([...write, ...caches.flat(), ...requirements.write])
    const guarded = { dataDir, homes, writable: writable.flatMap(({ path, real }) => [path, real]) }
    const programs = await Array.fromAsync([argv[0]!, ...requirements.programs], program =>
      programPaths(program, env.PATH ?? '', guarded),
    )
    const named = await commandPaths(argv, env, { configuredVariables, ...guarded })
    const folders = await resolvedPathsOfAll([...read, ...(level === 'files' ? [hubCache(env)] : [])])
    const required = await Array.fromAsync(
      [...requirements.read, ...(await linkedPaths(requirements.read, guarded))],
      path => ownPathsOf(path, guarded),
    )
    const secret = await Array.fromAsync([dataDir, ...secrets], path => resolvedPathAt(path))
    const mounts = viewOf({
      ownProc: support.tool.ownProc,
      system: await readSystem({ devices: requirements.devices }),
      secret: secret.filter(found => found !== undefined),
      homes,
      read: [...programs.flat(), ...named, ...folders, ...required.flat()],
      write: writable,
    })
    const wrapper = sandboxWrapper(support.tool, mounts, { network: level !== 'strict', root: realpathSync(root) })
    return { wrapper, level, isVisible: path => coverOf(path, mounts)?.kind === 'bind' }
  }

  return { support, wrapperFor }
}

/** The real path of a home, which engines do not see; none where it is the root of the machine. */
async function realHome(home: string | undefined): Promise<string[]> {
  const real = home ? (await resolvedPathAt(home))?.real : undefined
  return real === undefined || real === '/' ? [] : [real]
}

/** Variables that name the drivers' caches of compiled code. */
const codeCaches = ['CUDA_CACHE_PATH', 'MESA_SHADER_CACHE_DIR', '__GL_SHADER_DISK_CACHE_PATH']

/** Creates a driver's cache of compiled kernels. Without it engines work too, after a longer start. */
async function createdCache(folder: string | undefined): Promise<string[]> {
  if (!folder) return []
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return [folder]
  } catch {
    return []
  }
}

/** The folder of downloaded models. Its parent is not shown because it contains the hub token. */
const hubCache = (env: Readonly<Record<string, string>>): string =>
  env.HF_HUB_CACHE ?? env.HUGGINGFACE_HUB_CACHE ?? (env.HF_HOME === undefined ? '' : join(env.HF_HOME, 'hub'))

/** Error messages about inaccessible paths and addresses, from the C library, Node, Python and the linker. */
const inaccessible = new RegExp(
  [
    'no such file|not found|ENOENT|permission denied|EACCES|read-only file|EROFS|cannot open|open shared object',
    'cannot find (?:module|package)|MODULE_NOT_FOUND|FileNotFound|ModuleNotFound|no module named',
    'network is unreachable|ENETUNREACH',
  ].join('|'),
  'i',
)

/**
 * If an engine may have failed because of its sandbox: what to do, as a sentence. Otherwise empty. `absent` is a path that
 * the engine looked for and that its sandbox lacks. Pure.
 */
export function sandboxHint(
  level: 'strict' | 'files' | 'none',
  status: string,
  lastError: string,
  absent?: string,
): string {
  if (level === 'none' || status === '0' || !(inaccessible.test(lastError) || status === '126' || status === '127'))
    return ''
  return absent === undefined
    ? `It ran in the sandbox '${level}': add the paths that it needs to 'sandbox_read' or 'sandbox_write', or choose another 'sandbox'.`
    : `It ran in the sandbox '${level}', in which ${absent} is absent: add it to 'sandbox_read' or 'sandbox_write', or choose another 'sandbox'.`
}

/** The first path in an engine's error that exists on this machine, but not in the engine's sandbox. */
export async function absentPath(
  lastError: string,
  { isVisible }: Pick<Sandboxed, 'isVisible'>,
): Promise<string | undefined> {
  for (const words of lastError.match(/\/[^\s'"`:;,()[\]{}<>]+/g) ?? []) {
    const path = words.replace(/[.?!]+$/, '')
    if (!isVisible(path) && (await resolvedPathAt(path))) return path
  }
  return undefined
}
