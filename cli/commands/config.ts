import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { configSchema, readConfig } from '../../core/models/config.ts'
import { define as defineExplain } from '../config/explain.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import type { Terminal } from '../terminal.ts'

/** `infer config …`: which keys infer.yaml can have, what they mean, and whether a file is valid. */
export function define(command: Command, terminal: Terminal): void {
  defineExplain(command.command('explain'), terminal)
  const schema = command
    .command('schema')
    .summary('print what may stand in infer.yaml, as JSON Schema')
    .description(
      "Prints the JSON Schema of infer.yaml. An editor with a YAML language server completes and checks the file by it: save it beside the file and make '# yaml-language-server: $schema=./infer.schema.json' its first line.",
    )
    .action(() => terminal.print(JSON.stringify(configSchema(), null, 2)))
  withExamples(schema, [['infer config schema > infer.schema.json', 'for an editor']])

  const check = withDataDir(withJson(command.command('check')))
    .summary('check infer.yaml before the server reads it')
    .description(
      'Checks a configuration as the server would. Ends with 65 and the place of the fault when it is wrong. Warns of paths for sandboxes that do not exist.',
    )
    .argument('[path]', 'the file (infer.yaml in the data directory)')
    .action(async (path: string | undefined, { dataDir, json }: { dataDir?: string; json?: boolean }) => {
      const [{ traitsOf }, { missingSandboxPaths }] = await Promise.all([
        import('../../gpu/presets/presets.ts'),
        import('../../gpu/sandbox/missing-paths.ts'),
      ])
      const file = path ?? join(dataDirectory(dataDir), 'infer.yaml')
      if (path === undefined && !existsSync(file)) {
        if (json) return terminal.json({ path: null, models: [], warnings: [] })
        return terminal.print(
          `There is no ${file}, so the models that ship with infer are offered. 'infer model add' makes it.`,
        )
      }
      const { models } = readConfig(file, true, traitsOf)
      const count = models.length === 0 ? 'no model' : models.length === 1 ? 'one model' : `${models.length} models`
      const warnings = models.flatMap(model => (model.enabled ? missingSandboxPaths(model) : []))
      if (json) return terminal.json({ path: file, models: models.map(({ id }) => id), warnings })
      for (const warning of warnings) terminal.warn(warning)
      terminal.print(`${file} is in order: ${count}.`)
    })
  withExamples(check, [
    ['infer config check', 'the one of this installation'],
    ['infer config check ./infer.yaml', 'another one'],
  ])
  withExamples(command, [
    ['infer config explain memory', 'what a key means, its default and an example'],
    ['infer config check', 'whether infer.yaml is right, and if not, where it is wrong'],
    ['infer config schema > infer.schema.json', 'for an editor'],
  ])
}
