import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { Model } from '../../core/models/model.ts'
import { optionalText } from '../../core/optional-file.ts'
import { engineEnvironment } from '../../gpu/launcher/environment.ts'
import { comfyui, comfyuiFolder, comfyuiProgram } from '../../gpu/presets/comfyui.ts'
import type { SandboxSupport } from '../../gpu/sandbox/level.ts'
import type { ProgramRun } from '../../gpu/sandbox/program.ts'
import { printable } from '../terminal/styled-line.ts'
import type { SourceRelease } from './environment-kinds.ts'
import { fetchCommit } from './git-commit.ts'
import { writeProgram } from './install-environment.ts'
import { runInstaller } from './run-installer.ts'
import { openTrialConfinement, withSignal } from './trial-confinement.ts'
import { askTrialServer, lastLine } from './trial-server.ts'

interface ComfyuiOptions {
  dataDir: string
  source: SourceRelease
  /** Another repository, and another commit than that of the release. */
  from?: string | undefined
  commit?: string | undefined
  /** Whether the libraries are not those for the release. */
  hasOwnRequirements: boolean
  environment: Readonly<Record<string, string | undefined>>
  /** How engines are confined on this machine. */
  sandbox: SandboxSupport
  signal: AbortSignal
  onStep: (text: string) => void
  onLine: (line: string) => void
  /** Milliseconds that a trial may take until it answers. */
  trialMs?: number
}

/** Imports of PyTorch from a cold disk take minutes. */
const defaultTrialMs = 300_000

/** The folder of a commit in the environment. Its Python sees it in a sandbox, as it sees `lib`. */
const commitFolder = (folder: string, commit: string): string =>
  join(folder, 'libexec', `ComfyUI-${commit.slice(0, 12)}`)

/** What ComfyUI of a commit in an environment says of its version; undefined if it is not there. */
export const installedVersion = (folder: string, commit: string): string | undefined =>
  versionIn(commitFolder(folder, commit))

const versionIn = (source: string): string | undefined =>
  /^__version__\s*=\s*["']([\w.+-]+)["']/m.exec(optionalText(join(source, 'comfyui_version.py')) ?? '')?.[1]

/**
 * ComfyUI as the program of an environment: `fetch` downloads its commit, `place` puts it there, and `try` starts it on the
 * processor, without the custom nodes of the user. `warnings` is then what a trial has shown.
 */
export function openComfyuiProgram(options: ComfyuiOptions) {
  const { dataDir, source, from = source.repository, commit = source.commit, onStep, signal } = options
  const { environment, onLine } = options
  const staged = join(dataDir, '.comfyui-source')
  const warnings: string[] = []
  let version: string | undefined

  async function fetch(): Promise<void> {
    onStep(`Downloading ${source.title} with git`)
    await fetchCommit({ from, commit, into: staged, environment, signal, onLine })
    if (existsSync(join(staged, 'main.py'))) return
    throw new Failure('invalid_value', `The commit ${commit} has no main.py, so it is not ${source.title}.`)
  }

  async function place(folder: string): Promise<void> {
    // In a sandbox no engine can write what it has compiled.
    onStep(`Compiling ${source.title}`)
    rmSync(join(staged, '.git'), { recursive: true, force: true })
    const target = commitFolder(folder, commit)
    // So that messages of its code name the file that stays.
    const compile = ['-m', 'compileall', '-q', '-s', staged, '-p', target, staged]
    await runInstaller([join(folder, 'bin', 'python'), ...compile], { environment, signal, onLine }).catch(
      (thrown: unknown) => {
        // A file that cannot be compiled may never be used: the trial decides.
        if (!(thrown instanceof Failure)) throw thrown
      },
    )
    mkdirSync(join(folder, 'libexec'), { recursive: true })
    const main = JSON.stringify(join(target, 'main.py'))
    writeProgram(
      folder,
      comfyuiProgram,
      `import os\nimport sys\n\nos.execv(sys.executable, [sys.executable, ${main}, *sys.argv[1:]])\n`,
    )
    renameSync(staged, target)
  }

  return {
    commit,
    isChosen: commit !== source.commit || options.hasOwnRequirements,
    isIn: (folder: string) => existsSync(commitFolder(folder, commit)),
    fetch,
    place,
    async try(folder: string): Promise<void> {
      version = installedVersion(folder, commit)
      makeFolders(commitFolder(folder, commit), comfyuiFolder(dataDir))
      onStep(`Starting ${source.title} for a trial`)
      const trial = { ...options, folder, program: commitFolder(folder, commit), name: nameOf(source, version) }
      warnings.push(...(await tryComfyui(trial)))
    },
    warnings,
    version: () => version,
    /** Deletes what was downloaded and not put into use. */
    clean: () => rmSync(staged, { recursive: true, force: true }),
  }
}

const nameOf = ({ title }: SourceRelease, version: string | undefined): string => `${title} ${version ?? ''}`.trimEnd()

/** Makes the folders for models, one for each kind, and that for custom nodes. */
function makeFolders(source: string, files: string): void {
  for (const name of ['input', 'custom_nodes', 'models']) mkdirSync(join(files, name), { recursive: true, mode: 0o700 })
  if (!existsSync(join(source, 'models'))) return
  for (const entry of readdirSync(join(source, 'models'), { withFileTypes: true }))
    if (entry.isDirectory()) mkdirSync(join(files, 'models', entry.name), { recursive: true, mode: 0o700 })
}

/**
 * Starts ComfyUI with the options of its preset, in the sandbox of engines where there is one, and resolves with sentences
 * about what it could not load.
 */
async function tryComfyui(
  trial: ComfyuiOptions & { folder: string; program: string; name: string },
): Promise<string[]> {
  const { dataDir, folder, program, name, environment, sandbox, signal, trialMs = defaultTrialMs } = trial
  const home = realpathSync(mkdtempSync(join(folder, '..', '.trial-')))
  // Without the custom nodes of the user: without a sandbox they would run with all rights of the user.
  const base = join(home, 'base')
  makeFolders(program, base)
  const model = Model.parse({
    id: 'trial',
    engine: comfyui.name,
    command: [join(folder, 'bin', 'python'), join(program, 'main.py'), '--base-directory', base],
    tasks: ['slug/text-to-image'],
  })
  const facts = { slots: 1, threads: 1, gpus: 0, memoryShare: 1, freeShare: 1, bytes: 0, backend: null }
  const env = engineEnvironment({
    host: environment,
    home,
    bootId: 'trial',
    launchId: 'trial',
    visibleDevices: {},
    more: { CUDA_VISIBLE_DEVICES: '' },
  })
  const argv = comfyui
    .command(model, facts)
    .map(part => part.replaceAll('{home}', () => home).replaceAll('{outputs}', () => home))
  try {
    const confine = await openTrialConfinement({ dataDir, sandbox, host: environment, env, home, devices: [] })
    const { file, args, wrapper } = await confine(argv)
    return await askTrialServer({
      command: [file, ...args],
      env,
      home,
      healthPath: comfyui.healthPath(model)!,
      loads: { ms: trialMs, text: 'answered' },
      answerMs: 30_000,
      async ask(address, either, output) {
        const answer = await fetch(`${address}${comfyui.healthPath(model)}`, { signal: either })
        const { system } = (await answer.json()) as { system?: unknown }
        if (typeof system !== 'object') throw new Error('it has no system statistics')
        return lackingIn(name, output())
      },
      faultOf: run => startFault(withSignal(run, wrapper)),
      unusable: why => new Failure('worker_error', `${name} does not work in the environment: ${why}.`),
      signal,
    })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

const missingModules = (output: string): string[] => [
  ...new Set(Array.from(output.matchAll(/No module named ['"]([\w.]+)['"]/g), ([, name]) => name!)),
]

/** Why ComfyUI ended, as the end of a sentence; null if its output does not say it. Pure. */
export function startFault({ exitCode, errorCode, signal, stdout }: ProgramRun): string | null {
  // Others before it may be optional.
  const missing = Array.from(stdout.matchAll(/^ModuleNotFoundError: No module named '([\w.]+)'/gm)).at(-1)?.[1]
  if (missing !== undefined)
    return `it needs the Python module ${missing}, which the list of requirements does not have. Choose the list for its commit with --requirements`
  const [, option] = /unrecognized arguments: (.*\S)/.exec(stdout) ?? []
  if (option !== undefined) return `it does not know the options ${printable(option)}. Choose ComfyUI 0.3.50 or later`
  if (signal === 'SIGILL') return 'a library was built for a processor with instructions that this one lacks (SIGILL)'
  if (signal !== undefined) return `it was ended by ${signal}`
  if (errorCode !== undefined) return `it cannot be started (${errorCode})`
  return exitCode === undefined ? null : `it ended with exit code ${exitCode}: ${lastLine(stdout)}`
}

/** Sentences about nodes that a running ComfyUI could not load. Pure. */
export function lackingIn(name: string, output: string): string[] {
  const nodes = [...new Set(Array.from(output.matchAll(/IMPORT FAILED: (\S+)/g), ([, node]) => printable(node!)))]
  if (nodes.length === 0) return []
  const modules = missingModules(output)
  const why = modules.length === 0 ? '' : ` Missing Python modules: ${modules.join(', ')}.`
  return [`${name} starts, and could not load the nodes ${nodes.join(', ')}.${why} Graphs with them will fail.`]
}
