import { join } from 'node:path'
import type { Command } from 'commander'
import { readConfig } from '../../core/models/config.ts'
import { editConfigFile } from '../../core/models/config-file.ts'
import { defaultModels } from '../../core/models/defaults.ts'
import { removeModel } from '../../core/models/edit.ts'
import { confirm } from '../confirm.ts'
import { refused, usage } from '../exit-codes.ts'
import { interruptible } from '../interruption.ts'
import { localDirectory } from '../local-only.ts'
import { nameOf, withDataDir, withExamples, withJson } from '../options.ts'
import { sizeText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'
import { deleteFiles, ownFiles } from './files.ts'

interface Options {
  config?: string
  dataDir?: string
  yes?: boolean
  deleteFiles?: boolean
  json?: boolean
}

/** `infer model remove <id>`: takes a model out of infer.yaml, and its files where they are infer's own. */
export function define(command: Command, terminal: Terminal): void {
  const remove = withDataDir(withJson(command))
    .summary('offer a model no longer')
    .description(
      'Takes a model out of infer.yaml, whose comments stay. A running server lets its requests end and unloads it. Files are deleted only where infer has put them (models in the data directory), and only when you say so.',
    )
    .argument('<id>', 'the model')
    .option('--delete-files', 'delete its files too, where they are in the models folder of infer')
    .option('--config <path>', 'the file to take it out of (infer.yaml in the data directory)')
    .option('-y, --yes', 'do not ask; files stay unless --delete-files is given')
    .action((id: string, options: Options) => {
      const dataDir = localDirectory(command, options.dataDir)
      return interruptible(terminal, signal => run(id, { ...options, dataDir }, terminal, signal))
    })
  withExamples(remove, [
    [`${nameOf(command)} qwen3-8b`, 'asks before anything is changed'],
    [`${nameOf(command)} qwen3-8b --yes --delete-files`, 'without a question, with its files'],
  ])
}

async function run(
  id: string,
  options: Options & { dataDir: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { dataDir } = options
  const path = options.config ?? join(dataDir, 'infer.yaml')
  if (!options.yes && (options.json || !terminal.interactive))
    throw usage('Nobody can be asked here whether it is meant. Add --yes.')
  const { models, toys } = readConfig(path, options.config !== undefined)
  const model = models.find(one => one.id === id)
  if (!model && (toys ?? models.length === 0) && defaultModels().some(one => one.id === id))
    throw refused(
      'conflict',
      toys
        ? `'${id}' ships with infer and is offered because ${path} has 'toys: true'. Remove that line to offer only models of yours.`
        : `'${id}' ships with infer and is offered while ${path} lists no model. Add one of yours.`,
    )
  const files = model ? ownFiles(model, models, join(dataDir, 'models')) : []
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)

  if (model && !options.yes && !(await confirm(`Take '${id}' out of ${path}?`, false, terminal, signal)))
    return terminal.remark('Nothing was changed.')
  editConfigFile(path, (text, name) => removeModel(text, id, name))
  if (!options.json) terminal.print(`Took '${id}' out of ${path}.`)

  const wanted =
    files.length > 0 &&
    (options.deleteFiles ??
      (!options.yes && (await confirm(`Delete ${files[0]!.path} too (${sizeText(bytes)})?`, false, terminal, signal))))
  if (wanted) deleteFiles(files)
  const deleted = wanted ? files.map(file => file.path) : []
  if (options.json) return terminal.json({ model_id: id, config: path, deleted })
  if (wanted) terminal.print(`Deleted ${sizeText(bytes)}.`)
  else if (model?.source?.startsWith('/')) terminal.remark(`Its files stay: ${model.source}`)
  if (models.length === 1) terminal.remark('No model is configured now, so the toy models that ship are offered.')
}
