import { mkdirSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Wrapper } from '../launcher/wrapper.ts'
import { commandPaths } from './command-paths.ts'
import { effectiveLevel, type SandboxRequirements, type SandboxSupport } from './level.ts'
import type { ResolvedPath } from './mount.ts'
import { programPaths } from './program-paths.ts'
import { resolvedPathAt, resolvedPathsOf } from './resolved-paths.ts'
import { sandboxed } from './sandboxed.ts'
import { readSystem } from './system.ts'
import { viewOf } from './view.ts'

export interface SandboxOptions {
  /** Its real path. */
  dataDir: string
  support: SandboxSupport
  /** Files with secrets that lie elsewhere: the configuration, keys of certificates. */
  secrets?: readonly string[]
  /** The environment of this program. */
  host: Readonly<Record<string, string | undefined>>
}

export interface SandboxedLaunch {
  requirements: SandboxRequirements
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  /** Names of variables that the preset or the model's configuration has set. */
  own: readonly string[]
  /** Folders of the engine: its home, where it writes results, where its socket is. */
  write: readonly string[]
  /** Where it finds the files of requests. */
  read: readonly string[]
}

/** Builds the file system that each engine sees. */
export function openSandbox({ dataDir, support, secrets = [], host }: SandboxOptions) {
  const root = join(dataDir, 'run', 'root')
  mkdirSync(root, { recursive: true, mode: 0o700 })
  const homes = [host.HOME, homedir()].flatMap(home => {
    const real = home ? resolvedPathAt(home)?.real : undefined
    return real === undefined || real === '/' ? [] : [real]
  })

  /** How to start the engine so that it sees its own part only; undefined where it runs without a sandbox. */
  function wrapperFor({
    requirements,
    argv,
    env,
    own,
    write,
    read,
  }: SandboxedLaunch): { wrapper: Wrapper; level: 'strict' | 'files' } | undefined {
    const { level } = effectiveLevel(requirements.level, support)
    if (level === 'none' || support.tool === null) return undefined
    const writable = [...write, ...made(env.CUDA_CACHE_PATH)]
    const shown: ResolvedPath[] = [
      ...[argv[0]!, ...requirements.programs].flatMap(program =>
        programPaths(program, env.PATH ?? '', { dataDir, homes }),
      ),
      ...commandPaths(argv, env, { own, dataDir, homes }),
      ...[...read, ...requirements.read, ...(level === 'files' ? [hubCache(env)] : [])].flatMap(resolvedPathsOf),
    ]
    const mounts = viewOf({
      level,
      ownProc: support.tool.ownProc,
      system: readSystem(),
      secret: [dataDir, ...secrets].flatMap(path => resolvedPathAt(path) ?? []),
      homes,
      read: shown,
      write: [...writable, ...requirements.write].flatMap(resolvedPathsOf),
    })
    const wrapper = sandboxed(support.tool, mounts, { network: level !== 'strict', root: realpathSync(root) })
    return { wrapper, level }
  }

  return { support, wrapperFor }
}
export type Sandbox = ReturnType<typeof openSandbox>

/** Where the driver keeps what it has translated. Without it engines work too, after a longer start. */
function made(folder: string | undefined): string[] {
  if (!folder) return []
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return [folder]
  } catch {
    return []
  }
}

/** Where downloaded models lie. Not the folder above it, which holds the token of the hub. */
const hubCache = (env: Readonly<Record<string, string>>): string =>
  env.HF_HUB_CACHE ?? env.HUGGINGFACE_HUB_CACHE ?? (env.HF_HOME === undefined ? '' : join(env.HF_HOME, 'hub'))

/**
 * How failed programs speak of a path or an address that they cannot reach: the C library, Node, Python, the linker.
 */
const unreached = new RegExp(
  [
    'no such file|not found|ENOENT|permission denied|EACCES|read-only file|EROFS|cannot open|open shared object',
    'cannot find (?:module|package)|MODULE_NOT_FOUND|FileNotFound|ModuleNotFound|no module named',
    'network is unreachable|ENETUNREACH',
  ].join('|'),
  'i',
)

/** What to do when an engine may have ended because of its sandbox, as a sentence; empty when nothing says so. Pure. */
export function sandboxHint(level: 'strict' | 'files' | 'none', status: string, lastWords: string): string {
  if (level === 'none' || status === '0' || !(unreached.test(lastWords) || status === '126' || status === '127'))
    return ''
  return `It ran in the sandbox '${level}': name further paths that it needs in 'sandbox_read' or 'sandbox_write', or choose another 'sandbox'.`
}
