import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { openClient } from '../client.ts'
import { usage } from '../exit-codes.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import { printable } from '../paint.ts'
import type { Terminal } from '../terminal.ts'
import { readDocument } from './document.ts'
import { Diagnosed, workflowPath, workflowsNamed } from './workflow.ts'

interface Options {
  name?: string
  replace?: boolean
  dataDir?: string
  json?: boolean
}

/** `infer workflow create <file>`: writes a workflow down on the server. */
export function define(command: Command, terminal: Terminal): void {
  const create = withDataDir(withJson(command.command('create')))
    .summary('write a workflow down on the server')
    .description(
      'Writes a workflow from a file down on the server and prints its id. One that cannot run yet is taken all the same; what keeps it from running is said on standard error. With --replace the workflow of this name has a new version.',
    )
    .argument('<file>', 'the workflow, JSON or YAML')
    .option('--name <name>', 'another name than the one in the file')
    .option('--replace', 'as a new version of the workflow that has this name, where there is one')
    .action(async (path: string, { name, replace, dataDir, json }: Options) => {
      const { document } = readDocument(path)
      const body = { ...document, name: name ?? document.name }
      const client = openClient(dataDirectory(dataDir))
      const [same, ...others] = await workflowsNamed(client, body.name)
      if (replace && others.length > 0)
        throw usage(
          `${others.length + 1} workflows are called '${printable(body.name)}'. Delete all but one: infer workflow delete ${others[0]!.id}`,
        )
      const made =
        replace && same
          ? await client.ask({ method: 'PUT', path: workflowPath(same.id), body, answer: Diagnosed })
          : await client.ask({ method: 'POST', path: '/api/workflows', body, answer: Diagnosed })
      if (json) return terminal.json(made)
      const { warnings, type_issues: issues } = made.diagnostics
      for (const { message } of [...warnings, ...issues]) terminal.warn(printable(message))
      terminal.print(made.workflow.id)
      if (same && replace) terminal.remark(`Version ${made.workflow.version} of '${printable(body.name)}'.`)
      else if (same)
        terminal.warn(
          `${same.id} is called '${printable(body.name)}' too: each is run by its id. --replace makes a new version.`,
        )
    })
  withExamples(create, [
    ['infer workflow create story.yaml', 'and infer workflow run Story runs it'],
    ['infer workflow create story.yaml --replace', 'after the file was changed'],
  ])
}
