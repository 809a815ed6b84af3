import type { Command } from '@commander-js/extra-typings'
import { optionalText } from '../../core/optional-file.ts'
import { localDirectory } from '../client/find-server.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type CommonOptions, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type EnvironmentKind, environmentKinds, processorOnlyBytes, torchBuild } from './environment-kinds.ts'
import { configOption, requireTorchChoice, withIndex, withTorch } from './environment-options.ts'
import { type InstalledEnvironment, installedEnvironments, versionFields } from './installed-environments.ts'
import { changesBetween, type LibraryChange, packagesIn } from './installed-packages.ts'

interface UpdateOptions extends CommonOptions {
  indexUrl?: string
  torchIndexUrl?: string
  cuda?: string
  cpu?: true
  from?: string
  config?: string
  check?: boolean
  yes?: boolean
}

/** `infer engine update vllm` and the other Python environments: installs the versions of this infer beside the current ones. */
export function defineUpdateEnvironments(update: Command, terminal: Terminal): void {
  for (const kind of Object.values(environmentKinds) as EnvironmentKind[]) {
    const command = withTorch(withIndex(update.command(kind.name)))
      .summary(`the Python environment ${kind.name}`)
      .description(
        `Installs the versions with which this infer was made beside the current version of ${kind.name}, tries them, and only then puts them into use. Shows what changes first. Running engines keep their version until their next load, and so do models with \`engine_version\`. The version before stays; older ones that nothing uses are deleted.`,
      )
      .option('--check', 'only say what would change')
      .option('--from <repository>', 'for comfyui: a mirror of the Git repository, or a folder with a clone')
      .option('--config <path>', configOption)
      .option('-y, --yes', 'do not ask')
      .action(options => {
        requireTorchChoice(options)
        if (options.from !== undefined && !kind.source)
          throw usageFailure(`${kind.name} comes from the package index. Name another one with --index-url.`)
        const dataDir = localDirectory(command, options.dataDir)
        return interruptible(terminal, signal => updateEnvironment(kind, { ...options, dataDir }, terminal, signal))
      })
    withExamples(command, [
      [`infer engine update ${kind.name} --check`, 'what would change'],
      [`infer engine update ${kind.name}`, 'show it, ask, install, try and put into use'],
      [`infer engine setup ${kind.name} --release <version>`, 'go back'],
    ])
  }
}

async function updateEnvironment(
  kind: EnvironmentKind,
  options: UpdateOptions & { dataDir: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { dataDir, json } = options
  const current = installedEnvironments(dataDir, kind).find(one => one.isCurrent)
  if (!current) throw usageFailure(`${kind.name} is not installed. Install it with: infer engine setup ${kind.name}`)
  if (!current.marker)
    throw usageFailure(`${kind.name} is not complete. Complete it with: infer engine setup ${kind.name}`)
  if (current.marker.isChosen)
    return terminal.result(
      json,
      { engine: kind.name, version: current.version, latest: current.version, is_newer: false, changes: [] },
      `You have chosen ${kind.name} ${current.version} with --commit or --requirements, so it stays. Replace it by the version of this infer with: infer engine setup ${kind.name}`,
    )
  const torch = torchOf(current, options)
  const { wantedVersion } = await import('./install-environment.ts')
  const program = kind.source && { commit: kind.source.commit, isChosen: false }
  const { version, list, marker } = wantedVersion(kind, { torch: torch.name, program })
  const changes = [
    ...programChange(kind, current),
    ...changesBetween(packagesIn(current.path), list, { ownTorch: torch.name !== '' }),
  ]
  const isNewer = version !== current.version
  const isOldWorker = marker.worker !== current.marker.worker
  const title = titleOf(kind, current)
  const what = isNewer
    ? changesText(kind, changes, torch.name)
    : isOldWorker
      ? 'Only the worker of infer changes; the libraries are current.'
      : `All of ${title} is current: it has the versions with which this infer was made.`
  const facts = { engine: kind.name, version: current.version, latest: version, is_newer: isNewer || isOldWorker }
  if (options.check || !(isNewer || isOldWorker)) {
    const advice = isNewer || isOldWorker ? ` Install it with: infer engine update ${kind.name}` : ''
    return terminal.result(json, { ...facts, changes }, `${what}${advice}`)
  }
  if (!json) terminal.print(what)
  const bytes = torch.cpu ? processorOnlyBytes : kind.bytes
  if (!options.yes && (json || !terminal.interactive))
    throw usageFailure('This command asks for confirmation, which needs a terminal. Add --yes to confirm.')
  const question = isNewer
    ? `Install it beside ${current.version}, with up to ${sizeText(bytes)} on the disk?`
    : 'Install it?'
  if (!options.yes && !(await confirm(question, true, terminal, signal))) return terminal.remark('Nothing was changed.')
  const { installShown, printInstalled } = await import('./install-shown.ts')
  const installed = await installShown(kind, { ...options, ...torch.options }, terminal, signal)
  if (json)
    return terminal.json({
      engine: kind.name,
      before: current.version,
      path: installed.folder,
      changes,
      ...versionFields(installed),
    })
  for (const sentence of installed.program?.warnings ?? []) terminal.warn(sentence)
  await printInstalled(kind, installed, terminal)
  if (isNewer)
    terminal.print(
      `${current.version} stays installed. Go back with: infer engine setup ${kind.name} --release ${current.version}`,
    )
}

/** The build of PyTorch that the options name, else that of the current version. */
function torchOf({ marker }: InstalledEnvironment, { cuda, cpu }: UpdateOptions) {
  const kept = /^cu(\d+)(\d)$/.exec(marker!.torch)
  const version = cuda ?? (kept && !cpu ? `${kept[1]}.${kept[2]}` : undefined)
  const isForProcessor = version === undefined && (cpu || marker!.torch === 'cpu')
  const options = isForProcessor ? { cpu: true as const } : version === undefined ? {} : { cuda: version }
  const name = torchBuild(options)?.name ?? ''
  return { name, cpu: name === 'cpu', options }
}

const titleOf = (kind: EnvironmentKind, { version }: InstalledEnvironment): string =>
  `${kind.source?.title ?? kind.name} ${version}`

/** What changes of a program that is no package of the index. */
function programChange(kind: EnvironmentKind, { path, marker }: InstalledEnvironment): LibraryChange[] {
  if (!kind.source || marker?.commit === kind.source.commit) return []
  const file = `${path}/libexec/ComfyUI-${marker?.commit?.slice(0, 12)}/comfyui_version.py`
  const from = /^__version__\s*=\s*["']([\w.+-]+)["']/m.exec(optionalText(file) ?? '')?.[1] ?? null
  return [{ library: kind.source.title, from, to: kind.source.version }]
}

/** Libraries that are named; of the others only their number is told. */
const namedChanges = 6

/** What an update changes, as sentences. Pure. */
export function changesText(
  { name, modules, library, source }: EnvironmentKind,
  changes: readonly LibraryChange[],
  torch: string,
): string {
  const first = [source?.title ?? '', library, ...modules.map(module => module.replaceAll('_', '-'))]
  const rank = ({ library: one }: LibraryChange) => (first.includes(one) ? first.indexOf(one) : first.length)
  const sorted = changes.toSorted((one, other) => rank(one) - rank(other) || one.library.localeCompare(other.library))
  const shown = sorted.slice(0, namedChanges).map(one => `${one.library} ${one.from ?? 'none'} → ${one.to}`)
  const rest = sorted.length - shown.length
  const build = torch === '' ? '' : ` The build of PyTorch stays ${torch}.`
  if (shown.length === 0) return `The list of libraries of ${name} has changed, and no version.${build}`
  return `Changes of ${name}: ${shown.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}.${build}`
}
