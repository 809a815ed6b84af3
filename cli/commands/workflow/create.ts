import type { Command } from 'commander'
import { openClient } from '../../client/client.ts'
import { usageFailure } from '../../terminal/exit-codes.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { readWorkflowFile } from '../../workflows/document.ts'
import { Diagnosed, workflowPath, workflowsNamed } from '../../workflows/workflow.ts'

interface Options extends CommonOptions {
  name?: string
  replace?: boolean
}

/** `infer workflow create <file>`: stores a workflow on the server. */
export function define(command: Command, terminal: Terminal): void {
  const create = withCommon(command.command('create'))
    .summary('store a workflow on the server')
    .description(
      'Stores a workflow from a file on the server and prints its id. Also stores a workflow that cannot run yet, and prints its errors on standard error. With --replace creates a new version of the workflow with this name.',
    )
    .argument('<file>', 'the workflow, JSON or YAML')
    .option('--name <name>', 'name; default: the name in the file')
    .option('--replace', 'create a new version of the workflow with this name, if it exists')
    .action(async (path: string, { name, replace, dataDir, json }: Options) => {
      const { document } = readWorkflowFile(path)
      const body = { ...document, name: name ?? document.name }
      const client = openClient(dataDir)
      const [same, ...others] = await workflowsNamed(client, body.name)
      if (replace && others.length > 0)
        throw usageFailure(
          `${others.length + 1} workflows have the name '${printable(body.name)}'. Delete all but one: infer workflow delete ${others[0]!.id}`,
        )
      const stored =
        replace && same
          ? await client.ask({ method: 'PUT', path: workflowPath(same.id), body, answer: Diagnosed })
          : await client.ask({ method: 'POST', path: '/api/workflows', body, answer: Diagnosed })
      if (json) return terminal.json(stored)
      const { warnings, type_issues: issues } = stored.diagnostics
      for (const { message } of [...warnings, ...issues]) terminal.warn(printable(message))
      terminal.print(stored.workflow.id)
      if (same && replace) terminal.remark(`Version ${stored.workflow.version} of '${printable(body.name)}'.`)
      else if (same)
        terminal.warn(
          `${same.id} has the name '${printable(body.name)}' too, so run each by its id. --replace creates a new version instead.`,
        )
    })
  withExamples(create, [
    ['infer workflow create story.yaml', 'then run it: infer workflow run Story'],
    ['infer workflow create story.yaml --replace', 'after a change of the file'],
  ])
}
