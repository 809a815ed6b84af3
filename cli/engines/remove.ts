import { existsSync, readdirSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { readConfig } from '../../core/models/config.ts'
import type { Model } from '../../core/models/model.ts'
import { didYouMean, nearest } from '../../core/nearest.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import { comfyuiFolder } from '../../gpu/presets/comfyui.ts'
import { presetOf } from '../../gpu/presets/presets.ts'
import { localDirectory } from '../client/find-server.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type OptionsOf, withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type EnvironmentKind, environmentKinds } from './environment-kinds.ts'
import { releaseKinds } from './releases/release-kinds.ts'

const withRemoval = (command: Command) =>
  withCommon(command)
    .summary('delete the backends for GPUs, an installed engine, or a Python environment')
    .description(
      'With gpu, deletes the backends for GPUs of the built-in engine, whose models then run on the processor. Otherwise deletes an engine or a Python environment below engines of the data directory, all its versions or one, and says how much space that frees. Refused while a model of infer.yaml uses it, and of a version while it is the current one or engines run from it.',
    )
    .argument('<name>', 'gpu, or the engine or environment, as in infer engine list')
    .argument('[version]', 'only this version, as in infer engine list')
    .option('--config <path>', 'the file with the models; default: infer.yaml in the data directory')
    .option('-y, --yes', 'do not ask')
type RemovalOptions = OptionsOf<typeof withRemoval>

/** `infer engine remove <name>`: deletes the backends for GPUs, or an engine or environment that no model uses. */
export function define(command: Command, terminal: Terminal): void {
  withRemoval(command).action((name, version, options) => {
    const dataDir = localDirectory(command, options.dataDir)
    return interruptible(terminal, signal => run(name, version, { ...options, dataDir }, terminal, signal))
  })
  withExamples(command, [
    ['infer engine remove python', 'ask, then delete it'],
    ['infer engine remove speech --yes', 'without a question'],
    ['infer engine remove gpu', 'the backends for GPUs'],
    ['infer engine remove llama-server', 'all its releases'],
    ['infer engine remove vllm <version>', 'one of its versions'],
  ])
}

async function run(
  name: string,
  version: string | undefined,
  { dataDir, config, yes, json }: RemovalOptions & { dataDir: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  if (name === 'gpu' && version === undefined) return removeGpu({ dataDir, yes, json }, terminal, signal)
  const folder = environmentsFolder(dataDir)
  const names = existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true }).flatMap(entry => (entry.isDirectory() ? [entry.name] : []))
    : []
  if (!names.includes(name))
    throw usageFailure(
      `There is no engine or environment '${name}' to delete.${didYouMean([nearest(name, names) ?? []].flat())} See: infer engine list`,
    )
  const { models } = readConfig(config ?? join(dataDir, 'infer.yaml'), config !== undefined)
  const users = models.filter(model => usesOf(model, name, join(folder, name)).some(one => one === (version ?? one)))
  const isRelease = Object.keys(releaseKinds).includes(name)
  const what = `the ${isRelease ? 'engine' : 'environment'} '${name}'${version === undefined ? '' : ` ${version}`}`
  if (users.length > 0)
    throw refused(
      'conflict',
      `${users.map(({ id }) => `'${id}'`).join(', ')} in infer.yaml ${users.length === 1 ? 'uses' : 'use'} ${what}. Remove ${users.length === 1 ? 'this model' : 'these models'} first: infer model remove ${users[0]!.id}`,
    )
  const removal = version === undefined ? undefined : await removalOf({ dataDir, name, version, signal })
  const path = removal?.path ?? join(folder, name)
  requireConfirmation({ yes, json }, terminal)
  const { folderBytes } = await import('./folder-size.ts')
  const bytes = await (removal ? removal.bytes() : folderBytes(path))
  if (!yes && !(await confirm(`Delete ${path} (${sizeText(bytes)})?`, false, terminal, signal)))
    return terminal.remark('Nothing was changed.')
  if (version !== undefined) {
    const { withLock } = await import('../../core/models/hub/lock.ts')
    const onWait = () => terminal.remark('A setup of this engine runs. Waiting for its end')
    await withLock(`${join(folder, name)}.lock`, { signal, onWait }, async () => {
      // Asked again: it may have become the current one, or have been started, since the question.
      await (await removalOf({ dataDir, name, version, signal })).remove()
    })
  } else {
    // Renamed first, so that an interruption leaves no half of an environment under its name.
    const removed = join(dataDir, `.removed-environment-${process.pid}`)
    await rename(path, removed)
    await rm(removed, { recursive: true, force: true })
  }
  const shown = { name, ...(version !== undefined && { version }), path, bytes }
  terminal.result(json, shown, `Deleted ${what}: ${sizeText(bytes)} are free.`)
  const files = comfyuiFolder(dataDir)
  if (!json && name === 'comfyui' && version === undefined && existsSync(files))
    terminal.remark(`Its models and custom nodes are kept in ${files}.`)
}

/** The versions of an environment that a model uses; an empty text for the current one. */
function usesOf(model: Model, name: string, path: string): string[] {
  const places = presetOf(model).environments?.(model) ?? []
  return places.flatMap(place => {
    for (const start of [name, path]) {
      if (place === start) return ['']
      if (place.startsWith(`${start}/`)) return [place.slice(start.length + 1)]
    }
    return []
  })
}

/** How one version is deleted. Throws usage for one that is not installed, Failure `conflict` for one that is in use. */
async function removalOf({
  dataDir,
  name,
  version,
  signal,
}: {
  dataDir: string
  name: string
  version: string
  signal: AbortSignal
}): Promise<{ path: string; bytes(): Promise<number>; remove(): Promise<void> }> {
  const { installedReleases, removeRelease } = await import('./releases/installed-releases.ts')
  const { folderBytes } = await import('./folder-size.ts')
  const { deleteVersion, environmentBytes, installedEnvironments } = await import('./installed-environments.ts')
  const { identityOf, processesBelow, runningFiles } = await import('./running-programs.ts')
  const release = Object.values(releaseKinds).find(one => one.name === name)
  const kind = (environmentKinds as Record<string, EnvironmentKind>)[name]
  const releases = release ? installedReleases(dataDir, release) : []
  const environments = kind ? installedEnvironments(dataDir, kind) : []
  const found = [...releases, ...environments].find(one => one.version === version)
  const others = [...releases, ...environments].flatMap(one => one.version ?? [])
  if (!found)
    throw usageFailure(
      `${name} has no version '${version}'.${didYouMean([nearest(version, others) ?? []].flat())} See: infer engine list`,
    )
  if (found.isCurrent)
    throw refused(
      'conflict',
      `${version} is the current version of ${name}, which models without 'engine_version' use. Change to another one first: infer engine setup ${name} --release <version>. Or delete all: infer engine remove ${name}`,
    )
  const program = identityOf(join(found.path, 'bin', name))
  const isRunning = release ? runningFiles().some(one => one === program) : processesBelow(found.path).length > 0
  if (isRunning)
    throw refused(
      'conflict',
      `Engines run from ${version} of ${name}. Unload their models first: infer ps shows them, infer model unload <id> unloads one.`,
    )
  const { servedVersions } = await import('./releases/served-versions.ts')
  const served = await servedVersions(dataDir, kind?.engines ?? [name], signal)
  if (served?.has(version))
    throw refused(
      'conflict',
      `A model of the running server names ${version} of ${name} in its 'engine_version'. Change that first: infer ps shows the models.`,
    )
  return {
    path: found.path,
    bytes: () => (release ? folderBytes(found.path) : environmentBytes(dataDir, kind!, found)),
    remove: () => (release ? removeRelease(found.path) : deleteVersion(dataDir, kind!, found)),
  }
}

function requireConfirmation({ yes, json }: Pick<RemovalOptions, 'yes' | 'json'>, terminal: Terminal): void {
  if (!yes && (json || !terminal.interactive))
    throw usageFailure('This command asks for confirmation, which needs a terminal. Add --yes to confirm.')
}

async function removeGpu(
  { dataDir, yes, json }: Pick<RemovalOptions, 'yes' | 'json'> & { dataDir: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { installedBackends, removeBackends } = await import('./installed-backends.ts')
  const installed = await installedBackends(dataDir, terminal.environment)
  if (installed.length === 0) throw usageFailure('No backend for GPUs is installed. See: infer engine list')
  requireConfirmation({ yes, json }, terminal)
  const names = installed.map(one => one.name).join(', ')
  const question = `Delete the backends for GPUs (${names})? Models of the built-in engine then run on the processor.`
  if (!yes && !(await confirm(question, false, terminal, signal))) return terminal.remark('Nothing was changed.')
  const bytes = await removeBackends(dataDir, terminal.environment)
  terminal.result(json, { name: 'gpu', bytes }, `Deleted the backends for GPUs: ${sizeText(bytes)} are free.`)
}
