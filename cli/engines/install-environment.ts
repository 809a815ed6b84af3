import { chmodSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { withLock } from '../../core/models/hub/lock.ts'
import { optionalNames, optionalText } from '../../core/optional-file.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { divideRequirements, type EnvironmentKind, type TorchBuild, workerFiles } from './environment-kinds.ts'
import { folderBytes } from './folder-size.ts'
import {
  adoptFirst,
  deleteVersion,
  folderFor,
  installedEnvironments,
  isAdopted,
  linkProgram,
  type Marker,
  makeCurrent,
  markerOf,
  markerText,
  type Pruned,
  pinnedVersions,
  pruneEnvironments,
  requirementsFile,
  sha256,
  versionOf,
  versionsFolder,
} from './installed-environments.ts'
import { addedByUser, packagesIn, packagesOf } from './installed-packages.ts'
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
  /** An installed version to make the current one again, instead of installing one. */
  release?: string | undefined
  /** Keep the current version for models that name none. */
  beside?: boolean | undefined
  /** The file whose models may name versions, besides infer.yaml of the data directory. */
  config: string
  /**
   * Resolves with the versions that models of the running server name; with null where it does not tell, and then no version
   * is deleted. Called when the installation, which may take minutes, is complete.
   */
  served: () => Promise<ReadonlySet<string> | null>
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
  /** Whether an environment has it. */
  isIn(folder: string): boolean
  /** Gets it, before the libraries are installed. */
  fetch(): Promise<void>
  /** Puts it into the environment. */
  place(folder: string): Promise<void>
  /** Starts it there as its engine would, and rejects with Failure if it does not answer. */
  try(folder: string): Promise<void>
  /** Deletes what was fetched and not put there. */
  clean(): void
}

export interface InstalledNow extends Pruned {
  version: string
  folder: string
  packages: string
  isCurrent: boolean
  /** Packages of the version before that a user has put there, and that the new one lacks. */
  lacks: string[]
}

/** Space that is left free on the disk. */
const reserve = 512 << 20

/**
 * Makes a version of a Python environment with the libraries of `kind` and its worker, if it has one, beside the versions
 * that are installed, tries it, and only then makes it the current one. A complete version only gets the worker of this
 * infer; an interrupted one is continued, and one whose Python has gone is made anew. Deletes versions that nothing uses
 * any more. Rejects with Failure, and with the reason of the signal; the current version then stays as it was.
 */
export async function installEnvironment(options: InstallOptions): Promise<InstalledNow> {
  const { dataDir, kind, signal, onStep, program } = options
  const lock = versionsFolder(dataDir, kind)
  mkdirSync(dirname(lock), { recursive: true, mode: 0o700 })
  const onWait = () => onStep('Another setup of this environment runs. Waiting for its end')
  return await withLock(`${lock}.lock`, { signal, onWait }, async () => {
    // Read before anything changes: a wrong file is reported now.
    const own = join(dataDir, 'infer.yaml')
    const configs = new Set([options.config, own])
    const pinned = () => [...configs].flatMap(config => [...pinnedVersions(config, kind, config !== own)])
    pinned()
    try {
      const { version, folder, packages } = await install(options)
      const before = installedEnvironments(dataDir, kind).find(one => one.isCurrent && one.marker !== undefined)
      const isCurrent = !options.beside || before === undefined || before.version === version
      if (isCurrent) await makeCurrent(dataDir, kind, version)
      const served = await options.served()
      const kept = served && new Set([...pinned(), ...served])
      const lacks = before === undefined || before.path === folder ? [] : lackedBy(folder, before.path)
      const pruned = await pruneEnvironments(dataDir, kind, { version, pinned: kept })
      return { version, folder, packages, isCurrent, lacks, ...pruned }
    } finally {
      // While no other setup has begun: they fetch to the same folder.
      program?.clean()
    }
  })
}

/** What the version to install is made of, and its name. */
export function wantedVersion(
  kind: EnvironmentKind,
  {
    torch,
    requirements,
    program,
  }: {
    torch: string
    requirements?: string | undefined
    program?: Pick<ProgramOfEnvironment, 'commit' | 'isChosen'> | undefined
  },
) {
  const files = workerFiles()
  const list = requirements ?? files[kind.requirements]!
  const worker = kind.hasWorker ? workerHash(files) : undefined
  const { commit, isChosen } = program ?? {}
  const marker: Marker = { requirements: sha256(list), torch, commit, isChosen, worker }
  const main = kind.source
    ? commit === kind.source.commit
      ? kind.source.version
      : commit!.slice(0, 12)
    : (packagesOf(list).get(kind.library) ?? '0')
  return { list, marker, version: versionOf(main, marker) }
}

async function install(options: InstallOptions): Promise<{ version: string; folder: string; packages: string }> {
  const { dataDir, kind, onStep, program, torch, requirements } = options
  const wanted = wantedVersion(kind, { torch: torch?.name ?? '', requirements, program })
  const version = options.release ?? wanted.version
  const known = installedEnvironments(dataDir, kind).find(one => one.version === version)?.marker
  if (options.release !== undefined && !known) throw notInstalled(dataDir, kind, version)
  const marker: Marker = { ...(known ?? wanted.marker), worker: wanted.marker.worker }
  const path = join(versionsFolder(dataDir, kind), version)
  let isFetched = false
  if (program && !program.isIn(path)) {
    await program.fetch()
    isFetched = true
  }
  adoptFirst(dataDir, kind)
  const folder = folderFor(dataDir, kind, version)
  if (markerOf(folder) === undefined || !(await works(folder, [], options))) {
    if (options.release !== undefined) throw goneFrom(version)
    // Its files are beside those of the other versions, so it is not made anew there.
    if (isAdopted(folder))
      await deleteVersion(dataDir, kind, { version, path: realpathSync(versionsFolder(dataDir, kind)) })
    await installLibraries(folder, wanted.list, options)
  }
  const packages = await packagesFolder(folder, options)
  if (program && !program.isIn(folder)) {
    if (!isFetched) await program.fetch()
    await program.place(folder)
  }
  try {
    if (kind.modules.length > 0) {
      onStep('Checking that the libraries load')
      const imports = kind.modules.map(name => `import ${name}`).join('; ')
      await runInstaller([join(folder, 'bin', 'python'), '-c', imports], options)
    }
    await program?.try(folder)
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown
    throw new Failure(thrown.code, `${thrown.message}\n${whatStays(dataDir, kind, version)}`, { cause: thrown })
  }
  // After the check: models may be using this version.
  if (kind.hasWorker) {
    onStep('Installing the worker of infer')
    installWorker(folder, workerFiles())
  }
  linkProgram(folder, kind, version)
  // A version that is put into use is like any other from then on.
  const { name, text } = markerText({ ...marker, beside: options.beside || undefined })
  write(join(folder, name), text, 0o600)
  return { version, folder, packages }
}

function notInstalled(dataDir: string, { name }: EnvironmentKind, version: string): Failure {
  const kind = { name } as EnvironmentKind
  const others = installedEnvironments(dataDir, kind).flatMap(one => (one.marker ? [one.version!] : []))
  return new Failure(
    'invalid_value',
    `${name} ${version} is not installed. ${others.length > 0 ? `Installed: ${others.join(', ')}.` : `Install the version of this infer with: infer engine setup ${name}`}`,
  )
}

const goneFrom = (version: string): Failure =>
  new Failure('invalid_value', `The Python of version ${version} has gone, so it cannot be used any more.`)

function whatStays(dataDir: string, kind: EnvironmentKind, version: string): string {
  const complete = installedEnvironments(dataDir, kind).filter(one => one.marker)
  const current = complete.find(one => one.isCurrent)
  if (current?.version === version) {
    const other = complete.find(one => one !== current)
    const back = other ? `, or go back with: infer engine setup ${kind.name} --release ${other.version}` : '.'
    return `Models keep using this version, ${version}, so their next load may fail. Try again with the same command${back}`
  }
  const stays = current ? `Models keep using ${current.version}.` : 'It was not put into use.'
  return `${stays} Try again with the same command, or delete its files with: infer engine remove ${kind.name} ${version}`
}

/** What a user has put into the environment `before`, and another one lacks. */
function lackedBy(folder: string, before: string): string[] {
  const present = packagesIn(folder)
  return addedByUser(packagesIn(before), optionalText(join(before, requirementsFile)) ?? '').filter(
    one => !present.has(one.split('==')[0]!),
  )
}

async function installLibraries(folder: string, list: string, options: InstallOptions): Promise<void> {
  const { kind, torch, environment, signal, onStep, onLine, indexUrl } = options
  await requireSpace(folder, options.bytes ?? kind.bytes)
  const tools = await findPythonTools(environment, kind.pythonMinor, signal)
  // Until it is complete again, no command takes it for complete.
  rmSync(join(folder, markerText({ requirements: '', torch: '' }).name), { force: true })
  const modules = tools.name === 'pip' ? ['pip'] : []
  if (!(await works(folder, modules, options))) {
    onStep(`Making the environment ${folder} with ${tools.name}`)
    await runInstaller(tools.create(folder), { environment, signal, onLine })
  }
  const index = indexUrl ?? configuredIndex(environment)
  const run = (wanted: readonly string[], from: string | undefined) =>
    runInstaller(locked(dirname(folder), tools.install(folder, wanted)), {
      environment: { ...environment, ...(from === undefined ? {} : tools.indexVariables(from)) },
      signal,
      onLine,
    })
  const parts = torch ? divideRequirements(list) : { common: list, torch: [] }
  const file = join(folder, requirementsFile)
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
const locked = (versions: string, command: readonly string[]): string[] => [
  'flock',
  '--exclusive',
  '--no-fork',
  `${versions}.packages.lock`,
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
async function packagesFolder(folder: string, { environment, signal }: InstallOptions): Promise<string> {
  const where = 'import sysconfig; print(sysconfig.get_path("purelib"))'
  return (await runInstaller([join(folder, 'bin', 'python'), '-c', where], { environment, signal })).trim()
}

const workerFolder = 'infer-worker-'

const ofWorker = (files: Readonly<Record<string, string>>): [path: string, text: string][] =>
  Object.entries(files)
    .filter(([path]) => path.startsWith('infer_worker/'))
    .toSorted(([one], [other]) => one.localeCompare(other))

const workerHash = (files: Readonly<Record<string, string>>): string => sha256(JSON.stringify(ofWorker(files)))

/**
 * Copies the worker into a folder of its own in the environment, and writes its program. The one before stays for engines
 * that run.
 */
function installWorker(folder: string, files: Readonly<Record<string, string>>): void {
  const libexec = join(folder, 'libexec')
  const name = `${workerFolder}${workerHash(files).slice(0, 12)}`
  const before = /infer-worker-[0-9a-f]{12}/.exec(optionalText(join(folder, 'bin', 'infer-worker')) ?? '')?.[0]
  for (const [path, text] of ofWorker(files)) write(join(libexec, name, path), text, 0o644)
  writeProgram(
    folder,
    'infer-worker',
    `import sys\n\nsys.path.insert(0, ${JSON.stringify(join(libexec, name))})\nfrom infer_worker.__main__ import main\n\nsys.exit(main())\n`,
  )
  for (const one of optionalNames(libexec))
    if (one.startsWith(workerFolder) && one !== name && one !== before)
      rmSync(join(libexec, one), { recursive: true, force: true })
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
