import type { Command } from 'commander'
import { z } from 'zod'
import { openClient } from '../../client/client.ts'
import { executionPath } from '../../executions/execution.ts'
import { findExecution } from '../../executions/find.ts'
import { confirmDestructive } from '../../terminal/confirm.ts'
import { interruptible } from '../../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

interface Options extends CommonOptions {
  yes?: boolean
}

/** `infer execution delete <id>`: deletes an execution that has ended, with its jobs and files. */
export function define(command: Command, terminal: Terminal): void {
  const remove = withCommon(command.command('delete'))
    .summary('delete an execution that has ended, with its files')
    .description(
      'Deletes an execution that has ended, with its jobs and their files. Cancel a running execution first.',
    )
    .argument('<id>', 'the execution, or the end of its id')
    .option('--yes', 'do not ask')
    .action((text: string, { yes, json, dataDir }: Options) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const id = await findExecution(client, text, signal)
        if (!(await confirmDestructive(`Delete ${id} with its files?`, yes, terminal, signal))) return
        const deleted = await client.ask({ method: 'DELETE', path: executionPath(id), answer: z.unknown(), signal })
        if (json) terminal.json(deleted)
        else terminal.print(`${id} is deleted.`)
      }),
    )
  withExamples(remove, [['infer execution delete 7QK2M9XD --yes', 'without confirmation']])
}
