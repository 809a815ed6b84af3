import type { Command } from 'commander'
import { openClient } from '../../client/client.ts'
import { ExecutionAnswer, executionPath } from '../../executions/execution.ts'
import { findExecution } from '../../executions/find.ts'
import { lineText } from '../../jobs/log-line.ts'
import { type LogLine, logsOf } from '../../jobs/log-reader.ts'
import { refused } from '../../terminal/exit-codes.ts'
import { interruptible } from '../../terminal/interruption.ts'
import { type CommonOptions, withDataDir, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import type { Terminal } from '../../terminal/terminal.ts'

interface Options extends CommonOptions {
  node?: string
}

/** `infer execution logs <id>`: prints the logs of its nodes. */
export function define(command: Command, terminal: Terminal): void {
  const logs = withDataDir(command.command('logs'))
    .summary('print the logs of the nodes of an execution')
    .description('Prints the logs of the jobs of an execution, oldest first. Each line begins with its node.')
    .argument('<id>', 'the execution, or the end of its id')
    .option('--node <node>', 'only this node')
    .option('--json', 'print one JSON object per line')
    .action((text: string, { node: only, json, dataDir }: Options) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const path = executionPath(await findExecution(client, text, signal))
        const { execution } = await client.ask({ method: 'GET', path, answer: ExecutionAnswer, signal })
        const nodes = (execution.nodes ?? []).filter(({ node_id }) => only === undefined || node_id === only)
        if (only !== undefined && nodes.length === 0)
          throw refused('not_found', `The execution ${execution.id} has no node '${printable(only)}'.`)
        const lines: (LogLine & { node_id: string })[] = []
        for (const { node_id, job_id } of nodes)
          if (job_id) for (const line of await logsOf(client, job_id, signal)) lines.push({ node_id, ...line })
        lines.sort((a, b) => a.timestamp.localeCompare(b.timestamp))
        if (json) return lines.forEach(line => terminal.print(JSON.stringify(line)))
        const { paint } = terminal
        for (const line of lines) terminal.print(`${paint.name(printable(line.node_id))} ${lineText(line, paint)}`)
        if (lines.length === 0) terminal.remark('There are no log lines.')
      }),
    )
  withExamples(logs, [['infer execution logs 7QK2M9XD --node paint', 'the log of one node']])
}
