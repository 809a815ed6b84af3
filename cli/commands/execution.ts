import { type Command, Option } from '@commander-js/extra-typings'
import { executionStatuses } from '../../core/dag/execution-state.ts'
import { graphOf } from '../../core/workflows/graph.ts'
import { dependencies } from '../../core/workflows/plan.ts'
import { type Client, dataOf, memberOf, openClient } from '../client/client.ts'
import { storedSentence } from '../client/refusal.ts'
import { asJob, openRunDisplay, stateText } from '../executions/display.ts'
import {
  cancelExecution,
  type Execution,
  type ExecutionNode,
  type ExecutionSummary,
  executionOf,
  findExecution,
} from '../executions/execution.ts'
import { executionSnapshot, followExecution, unknownExecution } from '../executions/follow.ts'
import { checkOutputFolder, reportOutcome } from '../executions/report-outcome.ts'
import { joinFacts, reasonText } from '../jobs/display.ts'
import { type Fact, factLines, idText, jobStatusText, section, valueWidth } from '../jobs/draw.ts'
import { type LogLine, lineText, logsOf } from '../jobs/log-reader.ts'
import { connectionText } from '../jobs/submit.ts'
import { refused } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readCount, readSince, withCommon, withDataDir, withExamples } from '../terminal/options.ts'
import { lengthText, timeText, tookText } from '../terminal/quantities-text.ts'
import { confirmDestructive } from '../terminal/standard-input.ts'
import { type Paint, printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { readParameters } from '../workflows/document.ts'
import { changesOf, readParameter } from '../workflows/parameters.ts'
import { definitionOf, findWorkflow } from '../workflows/workflow.ts'
import { defineCompare } from './execution/compare.ts'

/** `infer execution …`: executions of workflows. */
export function define(command: Command, terminal: Terminal): void {
  for (const part of [
    defineList,
    defineShow,
    defineWatch,
    defineCancel,
    defineRetry,
    defineLogs,
    defineCompare,
    defineRemove,
  ])
    part(command, terminal)
  withExamples(command, [
    ['infer execution list', 'executions and their status'],
    ['infer execution watch 7QK2M9XD', 'by the end of its id'],
    ['infer execution retry 7QK2M9XD', 'continue where it failed'],
  ])
}

/** `infer execution list`: lists executions. */
function defineList(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list executions, newest first')
    .description(
      'Lists the executions of the organization, newest first. On a narrow terminal shows the end of each id, which every command accepts.',
    )
    .option('--workflow <workflow>', 'only executions of this workflow, by id or name')
    .addOption(new Option('--status <status>', 'only executions in this state').choices([...executionStatuses]))
    .option('--tag <tag>', 'only executions with this tag')
    .option('--since <time>', 'only executions created since: 30m, 2h, 7d or a date', readSince)
    .option('--limit <count>', 'maximum number, 1 to 100', readCount(1, 100), 20)
    .action(async ({ workflow, status, tag, since, limit, json, dataDir }) => {
      const client = openClient(dataDir)
      const workflow_id = workflow === undefined ? undefined : (await findWorkflow(client, workflow)).workflow.id
      const query = { workflow_id, status, tag, created_after: since, limit }
      const page = await dataOf(client.api.GET('/api/workflow-executions', { params: { query } }))
      if (json) return terminal.json(page)
      if (page.executions.length === 0)
        return terminal.remark(
          (workflow ?? status ?? tag ?? since)
            ? 'No execution matches.'
            : 'There are no executions yet. Run a workflow: infer workflow run story.yaml',
        )
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      terminal.table(
        ['id', 'status', 'workflow', 'done', 'age', 'took', 'note'],
        page.executions.map(one => rowOf(one, Date.now() / 1000, width, terminal.paint)),
      )
      if (page.has_more && limit < 100)
        terminal.remark(`There are more. Show them: --limit ${Math.min(100, limit * 5)}`)
    })
  withExamples(list, [
    ['infer execution list', 'the newest twenty'],
    ['infer execution list --workflow Story --status failed', 'failed executions of one workflow'],
  ])
}

const rowOf = (
  { id, status, workflow_id, workflow_name, progress, created_at, duration_ms, error }: ExecutionSummary,
  now: number,
  width: number,
  paint: Paint,
): string[] => [
  idText(id, width),
  jobStatusText(status, paint),
  // An older server says no names.
  workflow_id ? printable(workflow_name ?? idText(workflow_id, width)) : 'a file',
  progress ? `${progress.completed} of ${progress.total}` : '-',
  lengthText(now - created_at),
  duration_ms == null ? '-' : tookText(duration_ms),
  storedSentence(error?.message ?? '').replaceAll(/\s+/g, ' '),
]

/** `infer execution show <id>`: shows an execution with its nodes. */
function defineShow(command: Command, terminal: Terminal): void {
  const show = withCommon(command.command('show'))
    .summary('show one execution with its nodes')
    .description('Shows one execution: its state, its parameters, and the state of each node.')
    .argument('<id>', 'the execution, or the end of its id')
    .action(async (text, { dataDir, json }) => {
      const client = openClient(dataDir)
      const id = await findExecution(client, text)
      const execution = await executionOf(client, id)
      if (json) return terminal.json(execution)
      const { paint } = terminal
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      const facts = factLines(factsOf(execution, paint), paint)
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

const noteOf = (
  { error, queue_position: position, child_execution_id: child, items }: ExecutionNode,
  reason: string,
): string =>
  joinFacts([
    items ? `${items.completed} of ${items.total} items completed` : '',
    items && items.failed > 0 ? `${items.failed} failed` : '',
    items && items.waiting > 0 ? `${items.waiting} waiting` : '',
    ...(error
      ? [storedSentence(error.message).replaceAll(/\s+/g, ' ')]
      : [position ? `${position} ahead of it` : '', child ? `runs ${child}` : '', items ? '' : reason]),
  ])

function factsOf(execution: Execution, paint: Paint): Fact[] {
  const {
    id,
    status,
    error,
    workflow_id,
    workflow_version,
    workflow_name,
    tags,
    created_at,
    duration_ms,
    parent_execution_id,
    parent_node,
    waiting_for,
  } = execution
  return [
    ['id', id],
    ['status', jobStatusText(status, paint)],
    ['waits', waiting_for ? storedSentence(waiting_for.detail) : undefined],
    ['error', error ? storedSentence(error.message) : undefined],
    [
      'workflow',
      workflow_id
        ? `${workflow_name === undefined ? '' : `${printable(workflow_name)}, `}${workflow_id}, version ${workflow_version ?? '?'}`
        : undefined,
    ],
    // An older server knows no tags, and says no name of the workflow.
    ['tags', printable((tags ?? []).join(', ')) || undefined],
    ['submitted', timeText(created_at * 1000)],
    ['took', duration_ms == null ? undefined : tookText(duration_ms)],
    ['retry of', parent_execution_id ?? undefined],
    ['run by', parent_node ? `${parent_node.execution_id}, node ${printable(parent_node.node_id)}` : undefined],
  ]
}

/** `infer execution watch <id>`: follows an execution to its end and saves its files. */
function defineWatch(command: Command, terminal: Terminal): void {
  const watch = withCommon(command.command('watch'))
    .summary('follow an execution to its end')
    .description(
      'Follows an execution until it has ended, as infer workflow run does. Then prints texts, saves files and prints their paths. Ctrl-C stops following; the execution continues.',
    )
    .argument('<id>', 'the execution, or the end of its id')
    .option('--out <folder>', 'folder for files; default: the current folder')
    .action((text, { out, json = false, dataDir }) => {
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
  const execution = await executionOf(connect(), id, signal, 'dag')
  const names = (execution.nodes ?? []).map(({ node_id }) => node_id)
  // An older server sends no definition, only nodes.
  const graph = execution.dag ? dependencies(definitionOf(execution.dag)) : graphOf(names, [])
  const { started_at, created_at, duration_ms } = execution
  const agoMs = duration_ms ?? Math.max(0, Date.now() - (started_at ?? created_at) * 1000)
  const display = openRunDisplay(terminal, { title: id, graph, quiet: json, agoMs })
  try {
    const ended = await followExecution(connect, id, {
      signal,
      onChange: snapshot => display.change(snapshot),
      onTrouble: trouble => display.say(connectionText(id, trouble)),
    })
    const interrupts = { cancel: signal, leave: signal }
    await reportOutcome(terminal, connect, ended, display, interrupts, { graph, out, json })
  } finally {
    display.close()
  }
}

/** `infer execution cancel <id>`: cancels an execution and its nodes. */
function defineCancel(command: Command, terminal: Terminal): void {
  const cancel = withCommon(command.command('cancel'))
    .summary('cancel an execution and its nodes')
    .description(
      'Cancels an execution: pending nodes do not run, running nodes are aborted. Completed nodes keep their results.',
    )
    .argument('<id>', 'the execution, or the end of its id')
    .action(async (text, { dataDir, json }) => {
      const client = openClient(dataDir)
      const id = await findExecution(client, text)
      const execution = await cancelExecution(client, id)
      terminal.result(json, execution, `${id} is cancelled.`)
    })
  withExamples(cancel, [['infer execution cancel 7QK2M9XD', 'by the end of its id']])
}

/** `infer execution retry <id>`: runs an execution again, as a new one that reuses completed nodes. */
function defineRetry(command: Command, terminal: Terminal): void {
  const retry = withCommon(command.command('retry'))
    .summary('retry an execution from where it failed')
    .description(
      'Runs an execution that has ended again, as a new execution, and prints the new id. Completed nodes are reused. With other inputs of a node, that node and its successors run again.',
    )
    .argument('<id>', 'the execution, or the end of its id')
    .option('--from <node>', 'failed, start, or a node: this node and its successors run again; default: failed')
    .option(
      '--change <node.input=value>',
      'another input of a node, repeatable; it and its successors run again; node.input=@path reads a file',
      readParameter,
    )
    .option('--changes <file>', 'other inputs from a file, JSON or YAML: by node and input')
    .action(async (text, { from, change = [], changes: file, dataDir, json }) => {
      const nodes = changesOf(file === undefined ? {} : readParameters(file), change)
      const changes = Object.keys(nodes).length === 0 ? undefined : { nodes }
      const client = openClient(dataDir)
      const params = { path: { id: await findExecution(client, text) } }
      const retried = client.api.POST('/api/workflow-executions/{id}/retry', { params, body: { from, changes } })
      const execution = await memberOf(retried, 'execution')
      if (json) return terminal.json(execution)
      terminal.print(execution.id)
      if (terminal.isTerminal) terminal.remark(`Follow it: infer execution watch ${execution.id}`)
    })
  withExamples(retry, [
    ['infer execution retry 7QK2M9XD', 'from where it failed'],
    ['infer execution retry exec_… --from paint', 'run a node and its successors again'],
    ['infer execution retry exec_… --change paint.prompt="a red cat"', 'the same with another input'],
  ])
}

/** `infer execution logs <id>`: prints the logs of its nodes. */
function defineLogs(command: Command, terminal: Terminal): void {
  const logs = withDataDir(command.command('logs'))
    .summary('print the logs of the nodes of an execution')
    .description('Prints the logs of the jobs of an execution, oldest first. Each line begins with its node.')
    .argument('<id>', 'the execution, or the end of its id')
    .option('--node <node>', 'only this node')
    .option('--json', 'print one JSON object per line')
    .action((text, { node: only, json, dataDir }) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const execution = await executionOf(client, await findExecution(client, text, signal), signal)
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

/** `infer execution delete <id>`: deletes an execution that has ended, with its jobs and files. */
function defineRemove(command: Command, terminal: Terminal): void {
  const remove = withCommon(command.command('delete'))
    .summary('delete an execution that has ended, with its files')
    .description(
      'Deletes an execution that has ended, with its jobs and their files. Cancel a running execution first.',
    )
    .argument('<id>', 'the execution, or the end of its id')
    .option('--yes', 'do not ask')
    .action((text, { yes, json, dataDir }) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const id = await findExecution(client, text, signal)
        if (!(await confirmDestructive(`Delete ${id} with its files?`, yes, terminal, signal))) return
        const { data: deleted } = await client.api.DELETE('/api/workflow-executions/{id}', {
          params: { path: { id } },
          signal,
        })
        terminal.result(json, deleted, `${id} is deleted.`)
      }),
    )
  withExamples(remove, [['infer execution delete 7QK2M9XD --yes', 'without confirmation']])
}
