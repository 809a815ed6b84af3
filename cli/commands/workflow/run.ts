import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { dataDirectory } from '../../../core/config.ts'
import { type Dag, isPinned, type Parameters, type WorkflowNode } from '../../../core/dag/definition.ts'
import { definedMembers } from '../../../core/members.ts'
import { dependencies } from '../../../core/workflows/plan.ts'
import type { Selection } from '../../../core/workflows/selection.ts'
import { type Api, type Client, memberOf } from '../../client/client.ts'
import { openRunDisplay } from '../../executions/display.ts'
import type { Execution } from '../../executions/execution.ts'
import {
  checkOutputFolder,
  followOrCancelExecution,
  isUnfinished,
  reportOutcome,
} from '../../executions/report-outcome.ts'
import { type Priority, readPriority } from '../../generation/inputs.ts'
import { type SubmitInit, submit } from '../../jobs/submit.ts'
import { hasServer, withServer } from '../../server/with-server.ts'
import { usageFailure } from '../../terminal/exit-codes.ts'
import { withInterrupts } from '../../terminal/interruption.ts'
import { type CommonOptions, readDuration, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/styled-line.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { isFile, positionsIn, readParameters, readWorkflowFile } from '../../workflows/document.ts'
import {
  checkNames,
  checkValues,
  type GivenParameter,
  parameterValues,
  readParameter,
  uploadFiles,
  usedOf,
} from '../../workflows/parameters.ts'
import { pinsOf, readTexts, selectedOf } from '../../workflows/selection.ts'
import { diagnosticsOf, findWorkflow, refuseErrors } from '../../workflows/workflow.ts'

interface Options extends CommonOptions {
  param?: GivenParameter[]
  params?: string
  priority?: Priority
  timeout?: number
  out?: string
  node?: string
  only?: string[]
  to?: string
  pin?: GivenParameter[]
  usePins?: true
  tag?: string[]
  wait: boolean
}

/** Reads a timeout as whole seconds. */
function readTimeout(text: string): number {
  const seconds = Math.round(readDuration(text) / 1000)
  if (seconds < 1 || seconds > 86_400) throw new InvalidArgumentError('The timeout of an execution is 1s to 24h.')
  return seconds
}

/** Settings of an execution beside its definition. */
type Settings = Pick<
  Api['ExecuteWorkflow'],
  'input_params' | 'priority' | 'timeout' | 'only' | 'to' | 'pins' | 'use_pins' | 'tags'
>

/** The workflow to run, and the request that starts it. */
interface WorkflowRun {
  name: string
  dag: Dag
  parameters: Parameters | null
  start: (client: Client, settings: Settings, init: SubmitInit) => Promise<Execution>
}

/** `infer workflow run <file|id|name>`: runs a workflow, shows its progress, prints texts and saves files. */
export function define(command: Command, terminal: Terminal): void {
  const run = withCommon(command.command('run'))
    .summary('run a workflow, from a file or from the server')
    .description(
      'Runs a workflow: a JSON or YAML file, or a stored workflow by its id or name. On a terminal draws the graph with the state of each node; in a pipe prints one line per change, on standard error. At the end prints texts, saves files and prints their paths, below the names of the nodes if several have outputs. Ctrl-C cancels the execution; a second Ctrl-C leaves it running. If no server runs, starts one until the execution has ended.',
    )
    .argument('<workflow>', 'a file, or the id or the name of a workflow')
    .option('--param <name=value>', 'a parameter, repeatable; name=@path reads a file', readParameter)
    .option('--params <file>', 'parameters from a file, JSON or YAML; --param takes precedence')
    .option('--priority <level>', 'order in the queue: low, normal, high or -100 to 100', readPriority)
    .option('--timeout <time>', "maximum duration, 1s to 24h; default: the workflow's timeout", readTimeout)
    .option('--out <folder>', 'folder for files; default: the current folder')
    .option('--node <node>', 'print and save the outputs of this node only')
    .option('--only <node>', 'run exactly this node, repeatable; pin the results that it needs', readTexts)
    .option('--to <node>', 'run this node and those before it')
    .option(
      '--pin <node=result>',
      'a result instead of a run, as JSON, repeatable; node=@path reads a file',
      readParameter,
    )
    .option('--use-pins', 'use the pins of the workflow')
    .option('--tag <tag>', "a word to list the execution by, repeatable; default: the workflow's tags", readTexts)
    .option('--no-wait', 'print the execution id and exit; infer execution watch follows the execution')
    .action((workflow, options) => runWorkflow(terminal, workflow, options))
  withExamples(run, [
    ['infer workflow run story.yaml --param topic="a cat"', 'run a file without storing it'],
    ['infer workflow run Story --param photo=@cat.png --out made/', 'by its name, with an image'],
    ['infer workflow run story.yaml --node write', 'only the text of this node'],
    ['infer workflow run story.yaml --only paint --pin write=@write.json', 'one node, with a given result'],
    ['infer workflow run wf_… --params values.json --json', 'the record of the API'],
  ])
}

async function runWorkflow(terminal: Terminal, workflow: string, options: Options): Promise<void> {
  const { param = [], params, out, node, wait, json = false } = options
  const dataDir = dataDirectory(options.dataDir)
  checkOutputFolder(out)
  const fromFile = params === undefined ? {} : readParameters(params)
  const file = isFile(workflow) ? { path: workflow, ...readWorkflowFile(workflow) } : undefined
  const document = file?.document
  const { only, to, usePins, tag: tags } = options
  const pins = pinsOf(options.pin)
  const selection: Selection = definedMembers({ only, to, pins, usePins })
  const selects = Object.keys(selection).length > 0
  const partOf = (dag: Dag, declared: Parameters | null) => selectedOf({ dag, parameters: declared }, selection)
  const valuesFor = (dag: Dag, declared: Parameters | null) => {
    const part = partOf(dag, declared)
    const running = { nodes: Object.fromEntries(Object.entries(part.dag.nodes).filter(isRunning)), edges: [] }
    const values = parameterValues(usedOf(fromFile, dag, declared), param, declared)
    // Parameters of nodes that do not run are not sent.
    const used = selects ? usedOf(values, running, part.parameters) : values
    checkValues(used, running, part.parameters)
    return used
  }
  const checkNamesOf = (dag: Dag, declared: Parameters | null) => {
    const given = { options: param.map(({ name }) => name), file: Object.keys(fromFile) }
    const unused = checkNames(given, dag, declared)
    if (unused !== undefined) terminal.warn(unused)
  }
  // Errors in the file are reported before a server is started for it.
  if (document) {
    checkNamesOf(document.dag, document.parameters ?? null)
    valuesFor(document.dag, document.parameters ?? null)
  }
  if (!wait && !hasServer(dataDir))
    throw usageFailure('--no-wait needs a running server. Start one with infer serve, or remove --no-wait.')

  await withServer(terminal, dataDir, connect =>
    withInterrupts(terminal, async interrupts => {
      const { cancel, leave } = interrupts
      // What is wrong with nodes that do not run is no obstacle: the server checks the others.
      const check = { quiet: json, errors: !selects, signal: cancel }
      const workflowRun = file
        ? await checkedFile(terminal, connect(), file, check)
        : await checkedWorkflow(terminal, connect(), workflow, check)
      const { name, dag, parameters, start } = workflowRun
      if (!document) checkNamesOf(dag, parameters)
      const graph = dependencies(partOf(dag, parameters).dag)
      if (node !== undefined && !graph.nodes.includes(node))
        throw usageFailure(
          `The workflow has no node '${printable(node)}'. It has: ${graph.nodes.map(printable).join(', ')}.`,
        )
      const values = await uploadFiles(valuesFor(dag, parameters), connect(), terminal)
      const display = openRunDisplay(terminal, { title: name, graph, quiet: json || !wait })
      let execution: Execution | undefined
      try {
        // A timeout of the command line takes precedence over that of the file.
        const timeout = options.timeout === undefined ? {} : { timeout: options.timeout }
        const selected = { only, to, pins, use_pins: usePins }
        const settings = { input_params: values, priority: options.priority, ...timeout, ...selected, tags }
        execution = await submit(connect, (client, init) => start(client, settings, init), {
          signal: leave,
          onTrouble: text => display.say(text),
        })
        if (!wait) {
          terminal.result(json, execution, execution.id)
          return
        }
        if (!json) display.say(`${name}: ${execution.id}`)
        execution = await followOrCancelExecution(connect, execution.id, display, interrupts)
        await reportOutcome(terminal, connect, execution, display, interrupts, { graph, out, json, only: node })
      } finally {
        display.close()
        if (leave.aborted && execution && isUnfinished(execution))
          terminal.remark(`${execution.id} continues. Follow it: infer execution watch ${execution.id}`)
      }
    }),
  )
}

const isRunning = ([, node]: [string, WorkflowNode]): boolean => !isPinned(node)

/** How a workflow is checked before it runs. */
interface Check {
  /** Whether to print no warnings. */
  quiet: boolean
  /** Whether to refuse a workflow with errors. */
  errors: boolean
  signal: AbortSignal
}

async function checkedFile(
  terminal: Terminal,
  client: Client,
  { path: file, document, positionOf }: { path: string } & ReturnType<typeof readWorkflowFile>,
  { quiet, errors, signal }: Check,
): Promise<WorkflowRun> {
  const { name, tags, dag, parameters = null, on_failure, timeout, budget, region } = document
  const placeOf = positionsIn(file, document, positionOf)
  if (errors) refuseErrors(terminal, await diagnosticsOf(client, document, signal), { quiet, placeOf })
  return {
    name,
    dag,
    parameters,
    start: ({ submissions }, settings, init) => {
      const body = {
        name,
        dag,
        parameters,
        on_failure,
        timeout,
        budget: budget ?? undefined,
        region,
        ...settings,
        tags: settings.tags ?? tags,
      }
      return memberOf(submissions.POST('/api/workflows/run', { body, ...init }), 'execution')
    },
  }
}

async function checkedWorkflow(
  terminal: Terminal,
  client: Client,
  text: string,
  { quiet, errors, signal }: Check,
): Promise<WorkflowRun> {
  const { workflow, diagnostics } = await findWorkflow(client, text, { signal, orFile: true })
  if (errors) refuseErrors(terminal, diagnostics, { quiet })
  const { id, name, dag, parameters, version } = workflow
  return {
    name,
    dag,
    parameters,
    start: ({ submissions }, settings, init) => {
      const options = { params: { path: { id } }, body: { version, ...settings }, ...init }
      return memberOf(submissions.POST('/api/workflows/{id}/execute', options), 'execution')
    },
  }
}
