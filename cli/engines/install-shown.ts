import { join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { invalidValue } from '../../core/failure.ts'
import { withoutLogin } from '../../core/models/hub/settings.ts'
import { optionalText } from '../../core/optional-file.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import { probeSandbox } from '../../gpu/sandbox/probe.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { openComfyuiProgram } from './comfyui-program.ts'
import { type EnvironmentKind, processorOnlyBytes, type SourceRelease, torchBuild } from './environment-kinds.ts'
import type { InstalledNow } from './install-environment.ts'
import { installedEnvironments } from './installed-environments.ts'
import { configuredIndex } from './python-tools.ts'
import { servedVersions } from './releases/served-versions.ts'
import { printEvent } from './setup-events.ts'

export interface ShownOptions {
  dataDir: string
  cuda?: string
  cpu?: boolean
  indexUrl?: string
  torchIndexUrl?: string
  /** Repository, commit and file with the requirements of an engine that has a source. */
  from?: string
  commit?: string
  requirements?: string
  /** An installed version to make the current one again, instead of installing one. */
  release?: string
  /** Keep the current version for models that name none. */
  beside?: boolean
  /** The file whose models may name versions; default: infer.yaml in the data directory. */
  config?: string
  json?: boolean
  /** Print the progress as JSON, for the server. */
  events?: boolean
}

interface Shown extends InstalledNow {
  /** The engine that was put into the environment, and what its trial has shown. */
  program?: { version: string | null; commit: string; warnings: readonly string[] }
}

/**
 * Makes a version of a Python environment and shows each step in the terminal, for an engine with a source first its
 * license, size and origin. Rejects like `installEnvironment`.
 */
export async function installShown(
  kind: EnvironmentKind,
  options: ShownOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Shown> {
  const { dataDir, from, indexUrl, release, beside, events } = options
  const requirements = options.requirements === undefined ? undefined : readRequirements(options.requirements)
  const { installEnvironment } = await import('./install-environment.ts')
  const bytes = options.cpu ? processorOnlyBytes : kind.bytes
  if (kind.source && release === undefined && !options.json)
    showSource(kind, kind.source, { ...options, bytes }, terminal)
  let step = ''
  const tools = {
    dataDir,
    environment: hostEnvironment(),
    signal,
    onStep(text: string) {
      step = text
      if (events) printEvent('step', text, terminal)
      else terminal.waiting(text)
    },
    onLine(line: string) {
      if (events) printEvent('line', line, terminal)
      else terminal.progress(`${step}: ${line}`.slice(0, (terminal.stderr.columns ?? 80) - 1))
    },
  }
  const opened = kind.source && (await openProgram(kind, kind.source, { ...options, from }, tools))
  try {
    const made = await installEnvironment({
      ...tools,
      kind,
      requirements,
      program: opened,
      torch: torchBuild(options),
      bytes,
      indexUrl,
      release,
      beside,
      config: options.config ?? join(dataDir, 'infer.yaml'),
      served: () => servedVersions(dataDir, kind.engines, signal),
    })
    if (!opened) return made
    return {
      ...made,
      program: { version: opened.version() ?? null, commit: opened.commit, warnings: opened.warnings },
    }
  } catch (thrown) {
    if (signal.aborted) terminal.remark('Stopped. Run the same command to continue.')
    throw thrown
  } finally {
    terminal.progress('')
  }
}

async function openProgram(
  kind: EnvironmentKind,
  source: SourceRelease,
  { dataDir, from, commit, release, requirements }: ShownOptions,
  tools: Omit<Parameters<typeof openComfyuiProgram>[0], 'source' | 'sandbox' | 'hasOwnRequirements'>,
) {
  const { openComfyuiProgram } = await import('./comfyui-program.ts')
  const installed = installedEnvironments(dataDir, kind).find(one => release !== undefined && one.version === release)
  return openComfyuiProgram({
    ...tools,
    source,
    from,
    commit: installed?.marker?.commit ?? commit,
    hasOwnRequirements: requirements !== undefined,
    sandbox: await probeSandbox(hostEnvironment()),
  })
}

/** Says which version is used now, what was deleted, and what the user has to do again. */
export async function printInstalled(
  { name }: EnvironmentKind,
  { version, folder, isCurrent, deleted, running, lacks }: InstalledNow,
  terminal: Terminal,
): Promise<void> {
  const { sharedBytes } = await import('./folder-size.ts')
  const { bytes, shared } = await sharedBytes(folder)
  terminal.print(`The environment is complete: ${printable(folder)}`)
  if (shared > bytes / 4)
    terminal.print(
      `It has ${sizeText(bytes)}, of which ${sizeText(shared)} are hard links to the cache of uv and take no space of their own.`,
    )
  terminal.print(
    isCurrent
      ? `Models use it from their next load on. Running engines keep their version.`
      : `Models use it that have \`engine_version: ${version}\`.`,
  )
  if (lacks.length > 0)
    terminal.warn(
      `The version before has packages that you have added, and the new one lacks them: ${lacks.join(', ')}. Where custom nodes need them: uv pip install --python ${printable(folder)} ${lacks.join(' ')}`,
    )
  if (deleted.length > 0) terminal.print(`Deleted what nothing uses any more: ${deleted.join(', ')}.`)
  if (running.length > 0)
    terminal.print(
      `Engines of ${name} still run from ${running.join(', ')}. The next setup or update deletes what they no longer use.`,
    )
}

function showSource(
  { name }: EnvironmentKind,
  source: SourceRelease,
  { dataDir, from, commit, requirements, indexUrl, bytes }: ShownOptions & { bytes: number },
  terminal: Terminal,
): void {
  const { title, version, license, repository } = source
  const chosen = commit === undefined || commit === source.commit ? `${title} ${version}` : title
  terminal.print(
    `${chosen} (${license}), commit ${commit ?? source.commit} of ${printable(withoutLogin(from ?? repository))}`,
  )
  const index = indexUrl ?? configuredIndex(hostEnvironment()) ?? 'PyPI'
  terminal.print(
    `Libraries from ${printable(withoutLogin(index))}: ${requirements === undefined ? 'versions and hashes of infer, ' : `those of ${printable(requirements)}, `}each with its own license; up to ${sizeText(bytes)}, into ${printable(join(environmentsFolder(dataDir), name))}`,
  )
}

/** A list of requirements, each with a version and hashes, as `uv pip compile --generate-hashes` writes it. */
function readRequirements(file: string): string {
  const text = optionalText(file)
  if (text === undefined) throw invalidValue(`The list of requirements ${file} cannot be read.`)
  return text
}
