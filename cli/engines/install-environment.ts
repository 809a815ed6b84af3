import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { readdir, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { withLock } from '../../core/models/hub/lock.ts'
import { indexVariables } from '../../core/models/package-index/find-package-file.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import { findProgram } from '../../gpu/sandbox/program.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { divideRequirements, type EnvironmentKind, type TorchBuild, workerFiles } from './environment-kinds.ts'
import { runInstaller } from './run-installer.ts'

type Environment = Readonly<Record<string, string | undefined>>

interface InstallOptions {
  dataDir: string
  kind: EnvironmentKind
  /** The build of PyTorch; undefined for that of the package index. */
  torch?: TorchBuild | undefined
  /** Bytes that the complete environment takes, if not those of its kind. */
  bytes?: number | undefined
  indexUrl?: string | undefined
  environment: Environment
  signal: AbortSignal
  /** Called at the begin of each step. */
  onStep: (text: string) => void
  /** Called with each line that the tools print. */
  onLine: (line: string) => void
}

/** What a complete environment was made of. Written last, so that it is missing in an interrupted one. */
interface Marker {
  /** SHA-256 of the list of requirements. */
  requirements: string
  torch: string
}

const markerFile = 'infer-setup.json'
/** Space that is left free on the disk. */
const reserve = 512 << 20

/**
 * Makes a Python environment with the libraries of `kind` and its worker, if it has one, and resolves with its folder and that of its
 * packages. A complete environment only gets the worker of this version; an interrupted one is continued, and one whose
 * Python has gone is made anew. Rejects with Failure, and with the reason of the signal.
 */
export async function installEnvironment(options: InstallOptions): Promise<{ folder: string; packages: string }> {
  const { dataDir, kind, signal, onStep } = options
  const folder = join(environmentsFolder(dataDir), kind.name)
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 })
  const onWait = () => onStep('Another setup of this environment runs. Waiting for its end')
  return await withLock(`${folder}.lock`, { signal, onWait }, async () => {
    const files = workerFiles()
    const list = files[kind.requirements]!
    const wanted: Marker = { requirements: sha256(list), torch: options.torch?.name ?? '' }
    if (!isComplete(folder, wanted) || !(await works(folder, [], options)))
      await installLibraries(folder, list, options)
    const packages = await packagesOf(folder, options)
    if (kind.hasWorker) {
      onStep('Installing the worker of infer')
      installWorker(folder, packages, files)
    }
    onStep('Checking that the libraries load')
    const imports = kind.modules.map(name => `import ${name}`).join('; ')
    await runInstaller([join(folder, 'bin', 'python'), '-c', imports], options)
    write(join(folder, markerFile), JSON.stringify(wanted), 0o600)
    return { folder, packages }
  })
}

/** Whether the environment is complete; false also for one that was made for another version of the requirements. */
export function isComplete(folder: string, wanted: Partial<Marker>): boolean {
  try {
    const found = JSON.parse(readFileSync(join(folder, markerFile), 'utf8')) as Marker
    return (Object.keys(wanted) as (keyof Marker)[]).every(key => found[key] === wanted[key])
  } catch {
    return false
  }
}

/** SHA-256 of the list of requirements of a kind. */
export const requirementsHash = (kind: EnvironmentKind): string => sha256(workerFiles()[kind.requirements]!)

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

async function installLibraries(folder: string, list: string, options: InstallOptions): Promise<void> {
  const { kind, torch, environment, signal, onStep, onLine, indexUrl } = options
  await requireSpace(folder, options.bytes ?? kind.bytes)
  const tools = await findPythonTools(environment, kind.pythonMinor, signal)
  // Until it is complete again, no command takes it for complete.
  rmSync(join(folder, markerFile), { force: true })
  const modules = tools.name === 'pip' ? ['pip'] : []
  if (!(await works(folder, modules, options))) {
    onStep(`Making the environment ${folder} with ${tools.name}`)
    await runInstaller(tools.create(folder), { environment, signal, onLine })
  }
  const index = indexUrl ?? configuredIndex(environment)
  const run = (wanted: readonly string[], from: string | undefined) =>
    runInstaller(locked(folder, tools.install(folder, wanted)), {
      environment: { ...environment, ...(from === undefined ? {} : tools.indexVariables(from)) },
      signal,
      onLine,
    })
  const parts = torch ? divideRequirements(list) : { common: list, torch: [] }
  const file = join(folder, 'infer-requirements.txt')
  write(file, parts.common, 0o600)
  onStep(`Installing the libraries with ${tools.name}: up to ${sizeText(options.bytes ?? kind.bytes)}`)
  await run(['--no-deps', '--require-hashes', '-r', file], index)
  if (!torch) return
  onStep(`Installing PyTorch (${torch.name})`)
  await run(parts.torch, torch.index)
}

/**
 * The lock that an installer holds until it and its children have ended, also if this process is killed before: the next
 * setup waits for it.
 */
const locked = (folder: string, command: readonly string[]): string[] => [
  'flock',
  '--exclusive',
  '--no-fork',
  `${folder}.packages.lock`,
  ...command,
]

/** Whether the Python of the environment runs and has these modules. */
async function works(folder: string, modules: readonly string[], options: InstallOptions): Promise<boolean> {
  const python = join(folder, 'bin', 'python')
  if (!existsSync(python)) return false
  const { environment, signal } = options
  try {
    await runInstaller([python, '-c', ['import sys', ...modules.map(name => `import ${name}`)].join('; ')], {
      environment,
      signal,
    })
    return true
  } catch (thrown) {
    if (thrown instanceof Failure) return false
    throw thrown
  }
}

/** The folder of the packages of an environment. */
async function packagesOf(folder: string, { environment, signal }: InstallOptions): Promise<string> {
  const where = 'import sysconfig; print(sysconfig.get_path("purelib"))'
  return (await runInstaller([join(folder, 'bin', 'python'), '-c', where], { environment, signal })).trim()
}

/** Copies the worker into the environment, and writes its program. */
function installWorker(folder: string, packages: string, files: Readonly<Record<string, string>>): void {
  const python = join(folder, 'bin', 'python')
  rmSync(join(packages, 'infer_worker'), { recursive: true, force: true })
  for (const [path, text] of Object.entries(files))
    if (path.startsWith('infer_worker/')) write(join(packages, path), text, 0o644)
  // A path of more than 127 bytes, or with a space, does not work behind #!.
  const direct = `#!${python}\n`
  const head =
    Buffer.byteLength(direct) < 127 && !/\s/.test(python)
      ? direct
      : `#!/bin/sh\n'''exec' '${python.replaceAll("'", `'"'"'`)}' "$0" "$@"\n' '''\n`
  write(
    join(folder, 'bin', 'infer-worker'),
    `${head}import sys\n\nfrom infer_worker.__main__ import main\n\nsys.exit(main())\n`,
    0o755,
  )
}

/** Replaces a file by renaming, because an engine may be reading it. */
function write(path: string, text: string, mode: number): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.new`, text)
  chmodSync(`${path}.new`, mode)
  renameSync(`${path}.new`, path)
}

/** Rejects with Failure `disk_full`, which names both sizes, where the rest of the environment does not fit. */
async function requireSpace(folder: string, bytes: number): Promise<void> {
  const present = await folderBytes(folder)
  const { bavail, bsize } = await statfs(dirname(folder))
  const [needed, free] = [Math.max(0, bytes - present), bavail * bsize]
  if (needed + reserve <= free) return
  throw new Failure(
    'disk_full',
    `The environment ${folder} needs ${sizeText(needed)}, where ${sizeText(free)} are free, and ${sizeText(reserve)} must stay free. Free some space, or choose another disk with --data-dir.`,
  )
}

/** Bytes of the files in a folder; 0 for one that does not exist. */
export async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => [])
  let bytes = 0
  for (const entry of entries)
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => null))?.size ?? 0
  return bytes
}

/** The programs that make an environment and install packages into it. */
interface PythonTools {
  name: 'uv' | 'pip'
  /** Program and arguments that make the environment; those of an existing one are kept or replaced. */
  create(folder: string): string[]
  /** Program and arguments that install packages; the index is in the environment variables. */
  install(folder: string, wanted: readonly string[]): string[]
  /** Variables that name the package index. */
  indexVariables(index: string): Record<string, string>
}

const interpreter = (folder: string): string => join(folder, 'bin', 'python')

/**
 * Chooses uv where it is installed, else python3 with its modules venv and pip. Rejects with Failure `invalid_value` that
 * says what to install.
 */
async function findPythonTools(
  environment: Environment,
  pythonMinor: number,
  signal: AbortSignal,
): Promise<PythonTools> {
  const { PATH = '' } = environment
  const uv = findProgram('uv', PATH)
  if (uv !== undefined)
    return {
      name: 'uv',
      create: folder => [uv, 'venv', '--quiet', '--clear', '--python', `>=3.${pythonMinor}`, folder],
      install: (folder, wanted) =>
        [[uv, 'pip', 'install', '--no-progress', '--compile-bytecode', '--python', interpreter(folder)], wanted].flat(),
      indexVariables: index => ({ UV_DEFAULT_INDEX: index, UV_INDEX_URL: index }),
    }
  const python = findProgram('python3', PATH)
  if (python === undefined)
    throw new Failure(
      'invalid_value',
      'Neither uv nor python3 is installed. Install one of them (Debian, Ubuntu: sudo apt install python3-venv) and try again.',
    )
  const [major = 0, minor = 0] = (
    await runInstaller([python, '-c', 'import sys; print(*sys.version_info[:2])'], { environment, signal })
  )
    .trim()
    .split(' ')
    .map(Number)
  if (major !== 3 || minor < pythonMinor)
    throw new Failure(
      'invalid_value',
      `${python} is Python ${major}.${minor}, and the libraries need 3.${pythonMinor} or later. Install uv, which brings its own Python, or a later python3 on the PATH.`,
    )
  return {
    name: 'pip',
    create: folder => [python, '-m', 'venv', '--clear', folder],
    install: (folder, wanted) =>
      [
        [interpreter(folder), '-m', 'pip', 'install', '--disable-pip-version-check', '--no-input'],
        ['--progress-bar', 'off'],
        wanted,
      ].flat(),
    indexVariables: index => ({ PIP_INDEX_URL: index }),
  }
}

/** The package index that the variables of uv, pip and infer name, so that each tool uses it; undefined for PyPI. */
export const configuredIndex = (environment: Environment): string | undefined =>
  indexVariables.map(name => environment[name]?.trim()).find(value => value)
