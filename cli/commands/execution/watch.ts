import type { Command } from 'commander'
import { graphOf } from '../../../core/workflows/graph.ts'
import { dependencies } from '../../../core/workflows/plan.ts'
import { type Client, openClient } from '../../client/client.ts'
import { openRunDisplay } from '../../executions/display.ts'
import { ExecutionAnswer, executionPath } from '../../executions/execution.ts'
import { findExecution } from '../../executions/find.ts'
import { followExecution } from '../../executions/follow.ts'
import { checkOutputFolder, reportOutcome } from '../../executions/report-outcome.ts'
import { interruptible } from '../../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

interface Options extends CommonOptions {
  out?: string
}

/** `infer execution watch <id>`: follows an execution to its end and saves its files. */
export function define(command: Command, terminal: Terminal): void {
  const watch = withCommon(command.command('watch'))
    .summary('follow an execution to its end')
    .description(
      'Follows an execution until it has ended, as infer workflow run does. Then prints texts, saves files and prints their paths. Ctrl-C stops following; the execution continues.',
    )
    .argument('<id>', 'the execution, or the end of its id')
    .option('--out <folder>', 'folder for files; default: the current folder')
    .action((text: string, { out, json = false, dataDir }: Options) => {
      checkOutputFolder(out)
      return interruptible(terminal, signal =>
        watchExecution(terminal, () => openClient(dataDir), text, { out, json, signal }),
      )
    })
  withExamples(watch, [
    ['infer execution watch 7QK2M9XD', 'by the end of its id'],
    ['infer execution watch exec_… --out made/', 'save the files in a folder'],
  ])
}

async function watchExecution(
  terminal: Terminal,
  connect: () => Client,
  text: string,
  { out, json, signal }: { out: string | undefined; json: boolean; signal: AbortSignal },
): Promise<void> {
  const id = await findExecution(connect(), text, signal)
  const path = `${executionPath(id)}?include=dag`
  const { execution } = await connect().ask({ method: 'GET', path, answer: ExecutionAnswer, signal })
  const names = (execution.nodes ?? []).map(({ node_id }) => node_id)
  // An older server sends no definition, only nodes.
  const graph = execution.dag ? dependencies(execution.dag) : graphOf(names, [])
  const { started_at, created_at, duration_ms } = execution
  const agoMs = duration_ms ?? Math.max(0, Date.now() - (started_at ?? created_at) * 1000)
  const display = openRunDisplay(terminal, { title: id, graph, quiet: json, agoMs })
  try {
    const ended = await followExecution(connect, id, {
      signal,
      onChange: snapshot => display.change(snapshot),
      onTrouble: sentence =>
        display.say(sentence === undefined ? 'Connected again.' : `Reconnecting to ${id}. ${sentence}`),
    })
    const interrupts = { cancel: signal, leave: signal }
    await reportOutcome(terminal, connect, ended, display, interrupts, { graph, out, json })
  } finally {
    display.close()
  }
}
