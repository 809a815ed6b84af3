import { existsSync, readdirSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { readConfig } from '../../core/models/config.ts'
import { didYouMean, nearest } from '../../core/nearest.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import { presetOf } from '../../gpu/presets/presets.ts'
import { localDirectory } from '../client/find-server.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type OptionsOf, withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'

const withRemoval = (command: Command) =>
  withCommon(command)
    .summary('delete an environment of Python libraries')
    .description(
      'Deletes a Python environment below engines of the data directory, and says how much space that frees. Refused while a model of infer.yaml uses it.',
    )
    .argument('<name>', 'the environment, as in infer engine list')
    .option('--config <path>', 'the file with the models; default: infer.yaml in the data directory')
    .option('-y, --yes', 'do not ask')
type RemovalOptions = OptionsOf<typeof withRemoval>

/** `infer engine remove <name>`: deletes an environment that no model uses. */
export function define(command: Command, terminal: Terminal): void {
  withRemoval(command).action((name, options) => {
    const dataDir = localDirectory(command, options.dataDir)
    return interruptible(terminal, signal => run(name, { ...options, dataDir }, terminal, signal))
  })
  withExamples(command, [
    ['infer engine remove python', 'ask, then delete it'],
    ['infer engine remove speech --yes', 'without a question'],
  ])
}

async function run(
  name: string,
  { dataDir, config, yes, json }: RemovalOptions & { dataDir: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const folder = environmentsFolder(dataDir)
  const names = existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true }).flatMap(entry => (entry.isDirectory() ? [entry.name] : []))
    : []
  if (!names.includes(name))
    throw usageFailure(
      `There is no environment '${name}'.${didYouMean([nearest(name, names) ?? []].flat())} See: infer engine list`,
    )
  const path = join(folder, name)
  const { models } = readConfig(config ?? join(dataDir, 'infer.yaml'), config !== undefined)
  const users = models.filter(model => {
    const places = presetOf(model).environments?.(model) ?? []
    return places.includes(name) || places.includes(path)
  })
  if (users.length > 0)
    throw refused(
      'conflict',
      `${users.map(({ id }) => `'${id}'`).join(', ')} in infer.yaml ${users.length === 1 ? 'uses' : 'use'} the environment '${name}'. Remove ${users.length === 1 ? 'this model' : 'these models'} first: infer model remove ${users[0]!.id}`,
    )
  if (!yes && (json || !terminal.interactive))
    throw usageFailure('This command asks for confirmation, which needs a terminal. Add --yes to confirm.')
  const { folderBytes } = await import('./install-environment.ts')
  const bytes = await folderBytes(path)
  if (!yes && !(await confirm(`Delete ${path} (${sizeText(bytes)})?`, false, terminal, signal)))
    return terminal.remark('Nothing was changed.')
  // Renamed first, so that an interruption leaves no half of an environment under its name.
  const removed = join(dataDir, `.removed-environment-${process.pid}`)
  await rename(path, removed)
  await rm(removed, { recursive: true, force: true })
  terminal.result(json, { name, path, bytes }, `Deleted the environment '${name}': ${sizeText(bytes)} are free.`)
}
