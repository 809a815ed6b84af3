import { readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { dataDirectory, remoteServer } from '../../core/config.ts'
import { readConfig } from '../../core/models/config.ts'
import { editConfigFile, previewConfigEdit } from '../../core/models/config-file.ts'
import { defaultModels } from '../../core/models/defaults.ts'
import { removeModel } from '../../core/models/edit.ts'
import type { Model } from '../../core/models/model.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { commandName, type OptionsOf, withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'

const withRemoval = (command: Command) =>
  withCommon(command)
    .summary('stop offering a model')
    .description(
      'Removes a model from infer.yaml, whose comments stay. A running server finishes its requests and unloads it. Deletes only files that infer downloaded (models in the data directory), and only on request. With INFER_URL, that server does it.',
    )
    .argument('<id>', 'the model')
    .option('--delete-files', "also delete its files, if they are in infer's models folder")
    .option('--config <path>', 'the file to remove it from; default: infer.yaml in the data directory')
    .option('--dry-run', 'print the lines that would be removed, and change nothing')
    .option('-y, --yes', 'do not ask; files stay unless --delete-files is given')
type RemovalOptions = OptionsOf<typeof withRemoval>

/** `infer model remove <id>`: removes a model from infer.yaml, and on request the files that infer downloaded. */
export function define(command: Command, terminal: Terminal): void {
  const remove = withRemoval(command).action((id, options) => {
    return interruptible(terminal, async signal => {
      if (options.dataDir !== undefined || !remoteServer())
        return run(id, { ...options, dataDir: dataDirectory(options.dataDir) }, terminal, signal)
      const { removeElsewhere } = await import('./elsewhere.ts')
      await removeElsewhere(id, options, terminal, signal)
    })
  })
  withExamples(remove, [
    [`${commandName(command)} qwen3-8b`, 'ask before changing anything'],
    [`${commandName(command)} qwen3-8b --yes --delete-files`, 'without a question, with its files'],
  ])
}

async function run(
  id: string,
  options: RemovalOptions & { dataDir: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { dataDir } = options
  const path = options.config ?? join(dataDir, 'infer.yaml')
  if (!options.yes && !options.dryRun && (options.json || !terminal.interactive))
    throw usageFailure('This command asks for confirmation, which needs a terminal. Add --yes to confirm.')
  const { models, toys } = readConfig(path, options.config !== undefined)
  const model = models.find(one => one.id === id)
  if (!model && (toys ?? models.length === 0) && defaultModels().some(one => one.id === id))
    throw refused(
      'conflict',
      toys
        ? `'${id}' ships with infer and is offered because ${path} has 'toys: true'. Remove that line to offer only your models.`
        : `'${id}' ships with infer and is offered while ${path} lists no model. Add a model: infer model add`,
    )
  const edit = (text: string, name: string) => removeModel(text, id, name)
  const lines = previewConfigEdit(path, edit)
  if (options.dryRun) {
    if (options.json) return terminal.json({ model_id: id, config: path, lines, deleted: [] })
    terminal.print(`This would be removed from ${path}:\n`)
    for (const line of lines.removed) terminal.print(line)
    return
  }
  const files = model ? ownFiles(model, models, join(dataDir, 'models')) : []
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)

  if (model && !options.yes && !(await confirm(`Remove '${id}' from ${path}?`, false, terminal, signal)))
    return terminal.remark('Nothing was changed.')
  editConfigFile(path, edit)
  if (!options.json) terminal.print(`Removed '${id}' from ${path}.`)

  const shouldDelete =
    files.length > 0 &&
    (options.deleteFiles ??
      (!options.yes && (await confirm(`Also delete ${files[0]!.path} (${sizeText(bytes)})?`, false, terminal, signal))))
  if (shouldDelete) deleteFiles(files)
  const deleted = shouldDelete ? files.map(file => file.path) : []
  if (options.json) return terminal.json({ model_id: id, config: path, lines, deleted })
  if (shouldDelete) terminal.print(`Deleted ${sizeText(bytes)}.`)
  else if (model?.source?.startsWith('/')) terminal.remark(`Its files stay: ${model.source}`)
  if (models.length === 1) terminal.remark('No model is configured now, so the toy models are offered.')
}

interface OwnFile {
  /** Absolute, with all symbolic links resolved. */
  path: string
  bytes: number
}

/** File name of one part of a split GGUF model. */
const part = /^(.*)-\d{5}-of-(\d{5})\.gguf$/

/**
 * Returns the files that may be deleted with a model: files in `folder`, where infer saves downloads from URLs, that no
 * other model uses, including all parts of a split file. Files outside the folder, also behind links, are not infer's.
 */
function ownFiles(model: Model, all: readonly Model[], folder: string): OwnFile[] {
  const path = realOf(model.source)
  const within = realOf(folder)
  if (path === undefined || within === undefined || !path.startsWith(within + sep)) return []
  if (all.some(other => other.id !== model.id && realOf(other.source) === path)) return []
  const [, name, count] = part.exec(basename(path)) ?? []
  const paths =
    name === undefined
      ? [path]
      : readdirSync(dirname(path))
          .filter(file => part.exec(file)?.[1] === name && part.exec(file)?.[2] === count)
          .map(file => join(dirname(path), file))
  return paths
    .filter(one => statSync(one).isFile() && realOf(one) === one)
    .map(one => ({ path: one, bytes: statSync(one).size }))
}

/** Deletes the files, and the locks and license texts that a download created beside them. */
function deleteFiles(files: readonly OwnFile[]): void {
  for (const { path } of files)
    for (const left of [path, `${path}.lock`, `${path}.LICENSE`]) rmSync(left, { force: true })
}

function realOf(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  try {
    return realpathSync(resolve(path))
  } catch {
    return undefined
  }
}
