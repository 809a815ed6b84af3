import type { Command } from 'commander'
import type { Dag } from '../../../core/dag/definition.ts'
import { ranksOf } from '../../../core/workflows/graph.ts'
import { dependencies } from '../../../core/workflows/plan.ts'
import { openClient } from '../../client/client.ts'
import { usageFailure } from '../../terminal/exit-codes.ts'
import { withDataDir, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import { drawLine } from '../../terminal/styled-line.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { isFile, readWorkflowFile } from '../../workflows/document.ts'
import { drawGraph } from '../../workflows/draw.ts'
import { svgOf } from '../../workflows/svg.ts'
import { findWorkflow } from '../../workflows/workflow.ts'
import { dotOf, mermaidOf } from './export.ts'

interface Options {
  svg?: boolean
  mermaid?: boolean
  dot?: boolean
  dataDir?: string
}

/** Columns in a pipe, which has no width. */
const pipeWidth = 120

/** `infer workflow graph <file|id|name>`: draws the nodes and their dependencies. */
export function define(command: Command, terminal: Terminal): void {
  const drawing = withDataDir(command.command('graph'))
    .summary('draw the graph of a workflow')
    .description(
      'Draws the graph of a workflow: boxes and lines in the terminal, or as SVG, Mermaid or Graphviz DOT on standard output.',
    )
    .argument('<workflow>', 'a file, or the id or the name of a workflow')
    .option('--svg', 'as an SVG image, for light and dark pages')
    .option('--mermaid', 'as a Mermaid flowchart')
    .option('--dot', 'as Graphviz DOT')
    .action(async (text: string, { svg, mermaid, dot, dataDir }: Options) => {
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
