import { existsSync, readdirSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { readConfig } from '../../core/models/config.ts'
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
import { releaseKinds } from './releases/release-kinds.ts'

const withRemoval = (command: Command) =>
  withCommon(command)
    .summary('delete the backends for GPUs, an installed engine, or a Python environment')
    .description(
      'With gpu, deletes the backends for GPUs of the built-in engine, whose models then run on the processor. Otherwise deletes an engine or a Python environment below engines of the data directory, and says how much space that frees. Refused while a model of infer.yaml uses it.',
    )
    .argument('<name>', 'gpu, or the engine or environment, as in infer engine list')
    .option('--config <path>', 'the file with the models; default: infer.yaml in the data directory')
    .option('-y, --yes', 'do not ask')
type RemovalOptions = OptionsOf<typeof withRemoval>

/** `infer engine remove <name>`: deletes the backends for GPUs, or an engine or environment that no model uses. */
export function define(command: Command, terminal: Terminal): void {
  withRemoval(command).action((name, options) => {
    const dataDir = localDirectory(command, options.dataDir)
    return interruptible(terminal, signal => run(name, { ...options, dataDir }, terminal, signal))
  })
  withExamples(command, [
    ['infer engine remove python', 'ask, then delete it'],
    ['infer engine remove speech --yes', 'without a question'],
    ['infer engine remove gpu', 'the backends for GPUs'],
    ['infer engine remove llama-server', 'all its releases'],
  ])
}

async function run(
  name: string,
  { dataDir, config, yes, json }: RemovalOptions & { dataDir: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  if (name === 'gpu') return removeGpu({ dataDir, yes, json }, terminal, signal)
  const folder = environmentsFolder(dataDir)
  const names = existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true }).flatMap(entry => (entry.isDirectory() ? [entry.name] : []))
    : []
  if (!names.includes(name))
    throw usageFailure(
      `There is no engine or environment '${name}' to delete.${didYouMean([nearest(name, names) ?? []].flat())} See: infer engine list`,
    )
  const path = join(folder, name)
  const { models } = readConfig(config ?? join(dataDir, 'infer.yaml'), config !== undefined)
  const users = models.filter(model => {
    const places = presetOf(model).environments?.(model) ?? []
    return places.some(place => place === name || place === path || place.startsWith(`${name}/`))
  })
  const isRelease = Object.keys(releaseKinds).includes(name)
  const what = `the ${isRelease ? 'engine' : 'environment'} '${name}'`
  if (users.length > 0)
    throw refused(
      'conflict',
      `${users.map(({ id }) => `'${id}'`).join(', ')} in infer.yaml ${users.length === 1 ? 'uses' : 'use'} ${what}. Remove ${users.length === 1 ? 'this model' : 'these models'} first: infer model remove ${users[0]!.id}`,
    )
  requireConfirmation({ yes, json }, terminal)
  const { folderBytes } = await import('./install-environment.ts')
  const bytes = await folderBytes(path)
  if (!yes && !(await confirm(`Delete ${path} (${sizeText(bytes)})?`, false, terminal, signal)))
    return terminal.remark('Nothing was changed.')
  // Renamed first, so that an interruption leaves no half of an environment under its name.
  const removed = join(dataDir, `.removed-environment-${process.pid}`)
  await rename(path, removed)
  await rm(removed, { recursive: true, force: true })
  terminal.result(json, { name, path, bytes }, `Deleted ${what}: ${sizeText(bytes)} are free.`)
  const files = comfyuiFolder(dataDir)
  if (!json && name === 'comfyui' && existsSync(files))
    terminal.remark(`Its models and custom nodes are kept in ${files}.`)
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
