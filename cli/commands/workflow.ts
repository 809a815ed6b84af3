import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { stringify } from 'yaml'
import { dataDirectory } from '../../core/config.ts'
import type { Dag } from '../../core/dag/definition.ts'
import { readConfig } from '../../core/models/config.ts'
import { defaultModels } from '../../core/models/defaults.ts'
import { openRegistry } from '../../core/models/registry.ts'
import { requiredLabel } from '../../core/schemas/region.ts'
import { diagnose } from '../../core/workflows/diagnose.ts'
import { blockingOf, type Diagnostic, type Diagnostics } from '../../core/workflows/diagnostics.ts'
import { ranksOf } from '../../core/workflows/graph.ts'
import { offerOf } from '../../core/workflows/offer.ts'
import { dependencies } from '../../core/workflows/plan.ts'
import { dataOf, openClient } from '../client/client.ts'
import { hasServer } from '../server/with-server.ts'
import { exitCodes, refused, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readCount, withCommon, withDataDir, withExamples } from '../terminal/options.ts'
import { timeText } from '../terminal/quantities-text.ts'
import { confirmDestructive } from '../terminal/standard-input.ts'
import { drawLine, printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  isFile,
  positionOfFinding,
  positionsIn,
  readWorkflowFile,
  type WorkflowDocument,
} from '../workflows/document.ts'
import { drawGraph } from '../workflows/draw.ts'
import { svgOf } from '../workflows/svg.ts'
import { diagnosticsOf, findWorkflow, refuseErrors, workflowsNamed } from '../workflows/workflow.ts'
import { define as defineEstimate } from './workflow/estimate.ts'
import { dotOf, mermaidOf } from './workflow/export.ts'
import { define as defineRun } from './workflow/run.ts'

/** `infer workflow …`: tasks that depend on each other, run as one execution. */
export function define(command: Command, terminal: Terminal): void {
  for (const part of [
    defineRun,
    defineCheck,
    defineEstimate,
    defineGraph,
    defineList,
    defineShow,
    defineCreate,
    defineRemove,
  ])
    part(command, terminal)
  withExamples(command, [
    ['infer workflow run story.yaml --param topic="a cat"', 'run a file without storing it'],
    ['infer workflow check story.yaml', 'validate a file'],
    ['infer workflow graph story.yaml', 'draw the nodes and their dependencies'],
  ])
}

/** `infer workflow check <file>`: validates a workflow file. */
function defineCheck(command: Command, terminal: Terminal): void {
  const check = withCommon(command.command('check'))
    .summary('validate a workflow file')
    .description(
      'Validates a workflow file: fields, graph, references, models, voices and sizes that a model does not have, and the types of inputs. Uses the models of the server, or those of infer.yaml if no server runs. Each finding has file, line and column. Exits with 65 when the workflow would fail; warnings go to standard error.',
    )
    .argument('<file>', 'the workflow, JSON or YAML')
    .action(async (path, { dataDir, json }) => {
      const { document, positionOf } = readWorkflowFile(path)
      const diagnostics = await diagnosed(document, dataDirectory(dataDir))
      if (json) {
        const valid = blockingOf(diagnostics).length === 0
        const placed = <F extends Diagnostic>(found: F) => ({
          ...found,
          ...positionOfFinding(found, document, positionOf),
        })
        const { type_issues, warnings } = diagnostics
        terminal.json({
          valid,
          diagnostics: { type_issues: type_issues.map(placed), warnings: warnings.map(placed) },
        })
        if (!valid) terminal.setExitCode(exitCodes.data)
        return
      }
      refuseErrors(terminal, diagnostics, { placeOf: positionsIn(path, document, positionOf) })
      const count = Object.keys(document.dag.nodes).length
      terminal.print(`${path} can be run: ${count === 1 ? 'one node' : `${count} nodes`}.`)
    })
  withExamples(check, [['infer workflow check story.yaml', 'print every error with its line and column']])
}

async function diagnosed(
  { dag, parameters = null, region, timeout }: WorkflowDocument,
  dataDir: string,
): Promise<Diagnostics> {
  if (hasServer(dataDir)) {
    return diagnosticsOf(openClient(dataDir), { dag, parameters, region, timeout })
  }
  const { traitsOf } = await import('../../gpu/presets/presets.ts')
  const config = readConfig(join(dataDir, 'infer.yaml'), false, traitsOf)
  const registry = openRegistry({ ...config, defaults: defaultModels, traits: traitsOf })
  const offer = { ...offerOf(registry, () => true, requiredLabel(region)), ...(timeout ? { timeout } : {}) }
  return diagnose(dag, parameters ?? undefined, offer)
}

/** Columns in a pipe, which has no width. */
const pipeWidth = 120

/** `infer workflow graph <file|id|name>`: draws the nodes and their dependencies. */
function defineGraph(command: Command, terminal: Terminal): void {
  const drawing = withDataDir(command.command('graph'))
    .summary('draw the graph of a workflow')
    .description(
      'Draws the graph of a workflow: boxes and lines in the terminal, or as SVG, Mermaid or Graphviz DOT on standard output.',
    )
    .argument('<workflow>', 'a file, or the id or the name of a workflow')
    .option('--svg', 'as an SVG image, for light and dark pages')
    .option('--mermaid', 'as a Mermaid flowchart')
    .option('--dot', 'as Graphviz DOT')
    .action(async (text, { svg, mermaid, dot, dataDir }) => {
      if ([svg, mermaid, dot].filter(Boolean).length > 1)
        throw usageFailure('Choose one of --svg, --mermaid and --dot.')
      const { name, dag } = isFile(text)
        ? readWorkflowFile(text).document
        : (await findWorkflow(openClient(dataDir), text, { orFile: true })).workflow
      if (mermaid) return terminal.print(mermaidOf(dag))
      if (dot) return terminal.print(dotOf(name, dag))
      const graph = dependencies(dag)
      if (!ranksOf(graph))
        terminal.warn('The graph contains a cycle, so it is shown without its edges. See: infer workflow check')
      if (svg) return terminal.print(svgOf(name, dag))
      const width = terminal.isTerminal ? Math.max(20, terminal.stdout.columns || 80) : pipeWidth
      const drawn = drawGraph(
        { graph, label: nodes => labelOf(nodes, dag) },
        { width, height: Number.POSITIVE_INFINITY },
      )
      for (const line of drawn) terminal.print(drawLine(line, width, terminal.paint).trimEnd())
    })
  withExamples(drawing, [
    ['infer workflow graph story.yaml', 'in the terminal'],
    ['infer workflow graph Story --svg > story.svg', 'an SVG image'],
    ['infer workflow graph Story --mermaid', 'for Markdown'],
  ])
}

const labelOf = (nodes: readonly string[], dag: Dag): { lines: [string, string] } => {
  const [id = ''] = nodes
  return nodes.length === 1
    ? { lines: [printable(id), printable(dag.nodes[id]!.task.replace(/^\w+\//, ''))] }
    : { lines: [`${nodes.length} more`, ''] }
}

/** `infer workflow list [words]`: lists stored workflows. */
function defineList(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list the workflows, last changed first')
    .description('Lists the stored workflows of the organization, last changed first.')
    .argument('[words]', 'text in the name')
    .option('--tag <tag>', 'only workflows with this tag')
    .option('--limit <count>', 'maximum number, 1 to 100', readCount(1, 100), 20)
    .action(async (words, { tag, limit, dataDir, json }) => {
      const query = { limit, include: 'dag', q: words || undefined, tag } as const
      const page = await dataOf(openClient(dataDir).api.GET('/api/workflows', { params: { query } }))
      if (json) return terminal.json(page)
      if (page.workflows.length === 0)
        return terminal.remark(
          words || tag ? 'No workflow matches.' : 'No workflow is stored. Create one: infer workflow create story.yaml',
        )
      terminal.table(
        ['id', 'version', 'nodes', 'changed', 'tags', 'name'],
        page.workflows.map(({ id, version, dag, updated_at, tags, name }) => [
          id,
          String(version),
          String(Object.keys(dag?.nodes ?? {}).length),
          timeText(updated_at * 1000),
          printable((tags ?? []).join(', ')) || '-',
          printable(name),
        ]),
      )
      if (page.has_more) terminal.remark(`There are more. Show them: --limit ${Math.min(100, limit * 5)}`)
    })
  withExamples(list, [
    ['infer workflow list', 'the newest twenty'],
    ['infer workflow list story --json', 'the response of the API'],
  ])
}

/** `infer workflow show <id|name>`: prints the definition as a file that can be run. */
function defineShow(command: Command, terminal: Terminal): void {
  const show = withCommon(command.command('show'))
    .summary('print a workflow as a file that can be run')
    .description(
      'Prints a workflow as YAML, which can be saved, changed, and run or created again. Prints errors and warnings on standard error.',
    )
    .argument('<workflow>', 'its id or its name')
    .action(async (text, { dataDir, json }) => {
      const found = await findWorkflow(openClient(dataDir), text)
      if (json) return terminal.json(found)
      const { workflow, diagnostics } = found
      const { name, description, region, timeout, on_failure, budget, concurrency, parameters, dag } = workflow
      // An older server knows no tags.
      const tags = (workflow.tags ?? []).length > 0 ? workflow.tags : null
      const whole = { name, description, tags, region, timeout, on_failure, budget, concurrency, parameters, dag }
      const present = Object.entries(whole).filter(([, value]) => value !== null && value !== undefined)
      terminal.remark(`${workflow.id}, version ${workflow.version}`)
      terminal.print(printable(stringify(Object.fromEntries(present), { lineWidth: 0 })).trimEnd())
      for (const { message } of [...diagnostics.warnings, ...diagnostics.type_issues]) terminal.warn(printable(message))
    })
  withExamples(show, [
    ['infer workflow show Story > story.yaml', 'save it as a file'],
    ['infer workflow show wf_… --json', 'the response of the API'],
  ])
}

/** `infer workflow create <file>`: stores a workflow on the server. */
function defineCreate(command: Command, terminal: Terminal): void {
  const create = withCommon(command.command('create'))
    .summary('store a workflow on the server')
    .description(
      'Stores a workflow from a file on the server and prints its id. Also stores a workflow that cannot run yet, and prints its errors on standard error. Refuses a name that another workflow has, unless --replace creates a new version of that one.',
    )
    .argument('<file>', 'the workflow, JSON or YAML')
    .option('--name <name>', 'name; default: the name in the file')
    .option('--replace', 'create a new version of the workflow with this name, if it exists')
    .action(async (path, { name, replace, dataDir, json }) => {
      const { document } = readWorkflowFile(path)
      const body = { ...document, name: name ?? document.name }
      const client = openClient(dataDir)
      const [same, ...others] = await workflowsNamed(client, body.name)
      const called = `'${printable(body.name)}'`
      if (same && !replace)
        throw refused(
          'conflict',
          `There is a workflow ${called} already: ${same.id}, version ${same.version}. Create a new version of it with --replace, or another workflow with --name.`,
        )
      if (others.length > 0)
        throw usageFailure(
          `${others.length + 1} workflows have the name ${called}. Delete all but one: infer workflow delete ${others[0]!.id}`,
        )
      const stored = same
        ? await dataOf(client.api.PUT('/api/workflows/{id}', { params: { path: { id: same.id } }, body }))
        : await dataOf(client.api.POST('/api/workflows', { body }))
      if (json) return terminal.json(stored)
      const { warnings, type_issues: issues } = stored.diagnostics
      for (const { message } of [...warnings, ...issues]) terminal.warn(printable(message))
      terminal.print(stored.workflow.id)
      if (same) terminal.remark(`Version ${stored.workflow.version} of ${called}.`)
    })
  withExamples(create, [
    ['infer workflow create story.yaml', 'then run it: infer workflow run Story'],
    ['infer workflow create story.yaml --replace', 'after a change of the file'],
  ])
}

/** `infer workflow delete <id|name>`: deletes a workflow; its executions stay. */
function defineRemove(command: Command, terminal: Terminal): void {
  const remove = withCommon(command.command('delete'))
    .summary('delete a workflow; its executions stay')
    .description(
      'Deletes a workflow. Its executions stay. Refuses while an execution is running, unless --force cancels it.',
    )
    .argument('<workflow>', 'its id or its name')
    .option('--yes', 'do not ask')
    .option('--force', 'cancel running executions')
    .action((text, { yes, force, dataDir, json }) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const { workflow } = await findWorkflow(client, text, { signal })
        const question = `Delete the workflow '${printable(workflow.name)}' (${workflow.id})?`
        if (!(await confirmDestructive(question, yes, terminal, signal))) return
        const params = { path: { id: workflow.id }, query: { force: force ? ('true' as const) : undefined } }
        const { data: deleted } = await client.api.DELETE('/api/workflows/{id}', { params, signal })
        terminal.result(json, deleted, `${workflow.id} is deleted.`)
      }),
    )
  withExamples(remove, [['infer workflow delete Story --yes', 'without confirmation']])
}
