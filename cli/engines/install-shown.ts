import { join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { invalidValue } from '../../core/failure.ts'
import { withoutLogin } from '../../core/models/hub/settings.ts'
import { optionalText } from '../../core/optional-file.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type EnvironmentKind, processorOnlyBytes, type SourceRelease, torchBuild } from './environment-kinds.ts'
import { configuredIndex } from './python-tools.ts'

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
  json?: boolean
}

interface Shown {
  folder: string
  packages: string
  /** The engine that was put into the environment, and what its trial has shown. */
  program?: { version: string | null; commit: string; warnings: readonly string[] }
}

/**
 * Makes a Python environment and shows each step in the terminal, for an engine with a source first its license, size and
 * origin. Rejects like `installEnvironment`.
 */
export async function installShown(
  kind: EnvironmentKind,
  options: ShownOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Shown> {
  const requirements = options.requirements === undefined ? undefined : readRequirements(options.requirements)
  const { installEnvironment } = await import('./install-environment.ts')
  const bytes = options.cpu ? processorOnlyBytes : kind.bytes
  if (kind.source && !options.json) showSource(kind, kind.source, { ...options, bytes }, terminal)
  let step = ''
  const tools = {
    dataDir: options.dataDir,
    environment: hostEnvironment(),
    signal,
    onStep(text: string) {
      step = text
      terminal.waiting(text)
    },
    onLine: (line: string) => terminal.progress(`${step}: ${line}`.slice(0, (terminal.stderr.columns ?? 80) - 1)),
  }
  const { from, commit, indexUrl } = options
  const program = kind.source && {
    ...tools,
    source: kind.source,
    from,
    commit,
    hasOwnRequirements: requirements !== undefined,
  }
  const { openComfyuiProgram } = await import('./comfyui-program.ts')
  const opened = program && openComfyuiProgram(program)
  try {
    const made = await installEnvironment({
      ...tools,
      kind,
      requirements,
      program: opened,
      torch: torchBuild(options),
      bytes,
      indexUrl,
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
