import type { Command } from 'commander'
import { openClient } from '../../client/client.ts'
import { ExecutionAnswer, executionPath } from '../../executions/execution.ts'
import { findExecution } from '../../executions/find.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer execution cancel <id>`: cancels an execution and its nodes. */
export function define(command: Command, terminal: Terminal): void {
  const cancel = withCommon(command.command('cancel'))
    .summary('cancel an execution and its nodes')
    .description(
      'Cancels an execution: pending nodes do not run, running nodes are aborted. Completed nodes keep their results.',
    )
    .argument('<id>', 'the execution, or the end of its id')
    .action(async (text: string, { dataDir, json }: CommonOptions) => {
      const client = openClient(dataDir)
      const id = await findExecution(client, text)
      const path = `${executionPath(id)}/cancel`
      const { execution } = await client.ask({ method: 'POST', path, answer: ExecutionAnswer })
      if (json) terminal.json(execution)
      else terminal.print(`${id} is cancelled.`)
    })
  withExamples(cancel, [['infer execution cancel 7QK2M9XD', 'by the end of its id']])
}
