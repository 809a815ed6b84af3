import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { openClient } from '../client.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import { printable } from '../paint.ts'
import type { Terminal } from '../terminal.ts'
import { readDocument } from './document.ts'
import { Diagnosed } from './workflow.ts'

/** `infer workflow create <file>`: writes a workflow down on the server. */
export function define(command: Command, terminal: Terminal): void {
  const create = withDataDir(withJson(command.command('create')))
    .summary('write a workflow down on the server')
    .description(
      'Writes a workflow from a file down on the server and prints its id. One that cannot run yet is taken all the same; what keeps it from running is said on standard error.',
    )
    .argument('<file>', 'the workflow, JSON or YAML')
    .option('--name <name>', 'another name than the one in the file')
    .action(async (path: string, { name, dataDir, json }: { name?: string; dataDir?: string; json?: boolean }) => {
      const document = readDocument(path)
      const body = { ...document, name: name ?? document.name }
      const client = openClient(dataDirectory(dataDir))
      const made = await client.ask({ method: 'POST', path: '/api/workflows', body, answer: Diagnosed })
      if (json) return terminal.json(made)
      const { warnings, type_issues: issues } = made.diagnostics
      for (const { message } of [...warnings, ...issues]) terminal.warn(printable(message))
      terminal.print(made.workflow.id)
    })
  withExamples(create, [['infer workflow create story.yaml', 'and infer workflow run Story runs it']])
}
