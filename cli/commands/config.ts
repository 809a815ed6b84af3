import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { dataDirectory } from '../../core/config.ts'
import { configSchema, readConfig } from '../../core/models/config.ts'
import { define as defineExplain } from '../config/explain.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer config …`: which keys infer.yaml can have, what they mean, and whether a file is valid. */
export function define(command: Command, terminal: Terminal): void {
  defineExplain(command.command('explain'), terminal)
  const schema = command
    .command('schema')
    .summary('print the JSON Schema of infer.yaml')
    .description(
      "Prints the JSON Schema of infer.yaml. An editor with a YAML language server uses it to complete and check the file: save the schema beside infer.yaml, whose first line must be '# yaml-language-server: $schema=./infer.schema.json'.",
    )
    .action(() => terminal.print(JSON.stringify(configSchema(), null, 2)))
  withExamples(schema, [['infer config schema > infer.schema.json', 'for an editor']])

  const check = withCommon(command.command('check'))
    .summary('validate infer.yaml before the server reads it')
    .description(
      'Validates a configuration as the server does, and that the engines can load the files of the models. Prints where the errors are and exits with 65 when there is one. Warns about sandbox paths that do not exist, and of what an engine may refuse.',
    )
    .argument('[path]', 'the file (infer.yaml in the data directory)')
    .action(async (path, { dataDir, json }) => {
      const [{ traitsOf }, { checkModels }] = await Promise.all([
        import('../../gpu/presets/presets.ts'),
        import('../config/check-models.ts'),
      ])
      const file = path ?? join(dataDirectory(dataDir), 'infer.yaml')
      if (path === undefined && !existsSync(file)) {
        if (json) return terminal.json({ path: null, models: [], warnings: [] })
        return terminal.print(
          `There is no ${file}, so the server offers the models that ship with infer. 'infer model add' creates the file.`,
        )
      }
      const { models, limits, devices } = readConfig(file, true, traitsOf)
      const count = models.length === 0 ? 'no model' : models.length === 1 ? 'one model' : `${models.length} models`
      const warnings = await checkModels(models, file, devices)
      if (limits.engine_turn !== undefined)
        warnings.push('limits.engine_turn has no effect: limits.order_bound has replaced it. Remove the line.')
      if (json) return terminal.json({ path: file, models: models.map(({ id }) => id), warnings })
      for (const warning of warnings) terminal.warn(warning)
      terminal.print(`${file} is valid: ${count}.`)
    })
  withExamples(check, [
    ['infer config check', 'the file of this installation'],
    ['infer config check ./infer.yaml', 'another file'],
  ])
  withExamples(command, [
    ['infer config explain memory', 'what a key means, its default and an example'],
    ['infer config check', 'whether infer.yaml is valid, and where it is not'],
    ['infer config schema > infer.schema.json', 'for an editor'],
  ])
}
