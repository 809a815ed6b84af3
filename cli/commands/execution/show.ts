import type { Command } from 'commander'
import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { type Client, openClient } from '../../client/client.ts'
import { storedSentence } from '../../client/command-hints.ts'
import { type Execution, ExecutionAnswer, type ExecutionNode, executionPath } from '../../executions/execution.ts'
import { executionSnapshot, unknownExecution } from '../../executions/execution-snapshot.ts'
import { findExecution } from '../../executions/find.ts'
import { asJob, stateText } from '../../executions/label.ts'
import { factLines, idText, jobStatusText, section, valueWidth } from '../../jobs/draw.ts'
import { joinFacts, reasonText } from '../../jobs/progress-line.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { type Paint, printable } from '../../terminal/paint.ts'
import { timeText, tookText } from '../../terminal/quantities-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { workflowPath } from '../../workflows/workflow.ts'

/** `infer execution show <id>`: shows an execution with its nodes. */
export function define(command: Command, terminal: Terminal): void {
  const show = withCommon(command.command('show'))
    .summary('show one execution with its nodes')
    .description('Shows one execution: its state, its parameters, and the state of each node.')
    .argument('<id>', 'the execution, or the end of its id')
    .action(async (text: string, { dataDir, json }: CommonOptions) => {
      const client = openClient(dataDir)
      const id = await findExecution(client, text)
      const { execution } = await client.ask({ method: 'GET', path: executionPath(id), answer: ExecutionAnswer })
      if (json) return terminal.json(execution)
      const { paint } = terminal
      const name = await nameOfWorkflow(client, execution)
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      const facts = factLines(factsOf(execution, name, paint), paint)
      const parameters = section('parameters', execution.input_params, valueWidth(terminal), paint)
      terminal.print([...facts, ...parameters, ''].join('\n'))
      const run = executionSnapshot(unknownExecution, execution, 0)
      terminal.table(
        ['node', 'status', 'model', 'took', 'job', 'note'],
        (execution.nodes ?? []).map(node => {
          const snapshot = run.nodes.get(node.node_id)!
          const { node_id: name, model_id: model, job_id: job, status } = node
          const took = status === 'completed' ? stateText(snapshot, 0) : '-'
          const note = noteOf(node, reasonText(asJob(snapshot)))
          return [
            printable(name),
            jobStatusText(status, paint),
            printable(model),
            took,
            job ? idText(job, width) : '-',
            note,
          ]
        }),
      )
    })
  withExamples(show, [
    ['infer execution show 7QK2M9XD', 'by the end of its id'],
    ['infer execution show exec_… --json', 'the record of the API'],
  ])
}

const noteOf = ({ error, queue_position: position }: ExecutionNode, reason: string): string =>
  error
    ? storedSentence(error.message).replaceAll(/\s+/g, ' ')
    : joinFacts([position ? `${position} ahead of it` : '', reason])

const Named = z.looseObject({ workflow: z.looseObject({ name: z.string() }) })

/** Returns the name of its workflow; undefined if it ran from a file or the workflow was deleted. */
async function nameOfWorkflow(client: Client, { workflow_id: id }: Execution): Promise<string | undefined> {
  if (!id) return undefined
  try {
    return (await client.ask({ method: 'GET', path: workflowPath(id), answer: Named })).workflow.name
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.status === 404) return undefined
    throw thrown
  }
}

function factsOf(execution: Execution, workflow: string | undefined, paint: Paint): [name: string, value: string][] {
  const { id, status, error, workflow_id, workflow_version, created_at, duration_ms, parent_execution_id } = execution
  const rows: [string, string | undefined][] = [
    ['id', id],
    ['status', jobStatusText(status, paint)],
    ['error', error ? storedSentence(error.message) : undefined],
    [
      'workflow',
      workflow_id
        ? `${workflow === undefined ? '' : `${printable(workflow)}, `}${workflow_id}, version ${workflow_version ?? '?'}`
        : undefined,
    ],
    ['submitted', timeText(created_at * 1000)],
    ['took', duration_ms == null ? undefined : tookText(duration_ms)],
    ['retry of', parent_execution_id ?? undefined],
  ]
  return rows.filter((row): row is [string, string] => row[1] !== undefined)
}
