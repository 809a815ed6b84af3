import type { Command } from 'commander'
import { openClient } from '../../client/client.ts'
import { ExecutionAnswer, executionPath } from '../../executions/execution.ts'
import { findExecution } from '../../executions/find.ts'
import { withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer execution retry <id>`: runs an execution again, as a new one that reuses completed nodes. */
export function define(command: Command, terminal: Terminal): void {
  const retry = withCommon(command.command('retry'))
    .summary('retry an execution from where it failed')
    .description(
      'Runs an execution that has ended again, as a new execution, and prints the new id. Completed nodes are reused.',
    )
    .argument('<id>', 'the execution, or the end of its id')
    .option('--from <node>', 'failed, start, or a node: this node and its successors run again', 'failed')
    .action(async (text: string, { from, dataDir, json }: { from: string; dataDir?: string; json?: boolean }) => {
      const client = openClient(dataDir)
      const path = `${executionPath(await findExecution(client, text))}/retry`
      const { execution } = await client.ask({ method: 'POST', path, body: { from }, answer: ExecutionAnswer })
      if (json) return terminal.json(execution)
      terminal.print(execution.id)
      if (terminal.isTerminal) terminal.remark(`Follow it: infer execution watch ${execution.id}`)
    })
  withExamples(retry, [
    ['infer execution retry 7QK2M9XD', 'from where it failed'],
    ['infer execution retry exec_… --from paint', 'run a node and its successors again'],
  ])
}
