import type { Command } from 'commander'
import { z } from 'zod'
import { openClient } from '../../client/client.ts'
import { confirmDestructive } from '../../terminal/confirm.ts'
import { interruptible } from '../../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { findWorkflow, workflowPath } from '../../workflows/workflow.ts'

interface Options extends CommonOptions {
  yes?: boolean
  force?: boolean
}

/** `infer workflow delete <id|name>`: deletes a workflow; its executions stay. */
export function define(command: Command, terminal: Terminal): void {
  const remove = withCommon(command.command('delete'))
    .summary('delete a workflow; its executions stay')
    .description(
      'Deletes a workflow. Its executions stay. Refuses while an execution is running, unless --force cancels it.',
    )
    .argument('<workflow>', 'its id or its name')
    .option('--yes', 'do not ask')
    .option('--force', 'cancel running executions')
    .action((text: string, { yes, force, dataDir, json }: Options) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const { workflow } = await findWorkflow(client, text, { signal })
        const question = `Delete the workflow '${printable(workflow.name)}' (${workflow.id})?`
        if (!(await confirmDestructive(question, yes, terminal, signal))) return
        const path = `${workflowPath(workflow.id)}${force ? '?force=true' : ''}`
        const deleted = await client.ask({ method: 'DELETE', path, answer: z.unknown(), signal })
        if (json) terminal.json(deleted)
        else terminal.print(`${workflow.id} is deleted.`)
      }),
    )
  withExamples(remove, [['infer workflow delete Story --yes', 'without confirmation']])
}
