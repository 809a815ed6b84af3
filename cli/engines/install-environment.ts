import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { readdir, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { withLock } from '../../core/models/hub/lock.ts'
import { optionalJson } from '../../core/optional-file.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { divideRequirements, type EnvironmentKind, type TorchBuild, workerFiles } from './environment-kinds.ts'
import { configuredIndex, findPythonTools } from './python-tools.ts'
import { runInstaller } from './run-installer.ts'

type Environment = Readonly<Record<string, string | undefined>>

interface InstallOptions {
  dataDir: string
  kind: EnvironmentKind
  /** The build of PyTorch; undefined for that of the package index. */
  torch?: TorchBuild | undefined
  /** The list of requirements, if not that of its kind. */
  requirements?: string | undefined
  /** The program of its engine, if that is no package of the index. */
  program?: ProgramOfEnvironment | undefined
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

/** A program that is put into an environment. */
interface ProgramOfEnvironment {
  commit: string
  /** Whether the user chose the commit or the requirements. */
  isChosen: boolean
  /** Gets it, before the libraries are installed. */
  fetch(): Promise<void>
  /** Tries it in the complete environment, and puts it there. `before`: the commit that is there. */
  place(folder: string, before: string | undefined): Promise<void>
  /** Deletes what was fetched and not put there. */
  clean(): void
}

/** What a complete environment was made of. Written last, so that it is missing in an interrupted one. */
interface Marker {
  /** SHA-256 of the list of requirements. */
  requirements: string
  torch: string
  /** Those of its program, where it has one. */
  commit?: string
  isChosen?: boolean
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
  const { dataDir, kind, signal, onStep, program } = options
  const folder = join(environmentsFolder(dataDir), kind.name)
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 })
  const onWait = () => onStep('Another setup of this environment runs. Waiting for its end')
  return await withLock(`${folder}.lock`, { signal, onWait }, async () => {
    const files = workerFiles()
    const list = options.requirements ?? files[kind.requirements]!
    const wanted: Marker = { requirements: sha256(list), torch: options.torch?.name ?? '' }
    const before = markerOf(folder)?.commit
    try {
      await program?.fetch()
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
      await program?.place(folder, before)
      const made = program && { commit: program.commit, isChosen: program.isChosen }
      write(join(folder, markerFile), JSON.stringify({ ...wanted, ...made }), 0o600)
      return { folder, packages }
    } finally {
      // While no other setup has begun: they fetch to the same folder.
      program?.clean()
    }
  })
}

/** Whether the environment is complete; false also for one that was made for another version of the requirements. */
export function isComplete(folder: string, wanted: Partial<Marker>): boolean {
  const found = markerOf(folder)
  return found !== undefined && (Object.keys(wanted) as (keyof Marker)[]).every(key => found[key] === wanted[key])
}

/** What an environment was made of; undefined for one that is not complete. */
export const markerOf = (folder: string): Marker | undefined =>
  optionalJson(join(folder, markerFile)) as Marker | undefined

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
  if (parts.common.trim() !== '') await run(['--no-deps', '--require-hashes', '-r', file], index)
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
  rmSync(join(packages, 'infer_worker'), { recursive: true, force: true })
  for (const [path, text] of Object.entries(files))
    if (path.startsWith('infer_worker/')) write(join(packages, path), text, 0o644)
  writeProgram(folder, 'infer-worker', 'import sys\n\nfrom infer_worker.__main__ import main\n\nsys.exit(main())\n')
}

/** Writes a program in Python into an environment. */
export function writeProgram(folder: string, name: string, code: string): void {
  const python = join(folder, 'bin', 'python')
  // A path of more than 127 bytes, or with a space, does not work behind #!.
  const direct = `#!${python}\n`
  const head =
    Buffer.byteLength(direct) < 127 && !/\s/.test(python)
      ? direct
      : `#!/bin/sh\n'''exec' '${python.replaceAll("'", `'"'"'`)}' "$0" "$@"\n' '''\n`
  write(join(folder, 'bin', name), head + code, 0o755)
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
