import type { Dag } from '../../../core/dag/definition.ts'
import { graphEdges } from '../../../core/workflows/graph.ts'
import { dependencies } from '../../../core/workflows/plan.ts'
import { printable } from '../../terminal/styled-line.ts'

/** Escapes a quoted text for Mermaid, whose entities begin with a number sign. */
const mermaidText = (text: string): string =>
  printable(text)
    .replaceAll('#', '#35;')
    .replaceAll('"', '#quot;')
    .replaceAll(/[<>&]/g, sign => `#${sign.codePointAt(0)};`)
    .replaceAll(/\s+/g, ' ')

/** Returns the graph as a Mermaid flowchart. Nodes are numbered, because ids may be keywords of Mermaid. Pure. */
export function mermaidOf(dag: Dag): string {
  const graph = dependencies(dag)
  const number = new Map(graph.nodes.map((id, at) => [id, `n${at}`]))
  const nodes = graph.nodes.map(
    id => `  ${number.get(id)!}["${mermaidText(id)}<br/>${mermaidText(dag.nodes[id]!.task)}"]`,
  )
  const edges = graphEdges(graph).map(({ from, to }) => `  ${number.get(from)!} --> ${number.get(to)!}`)
  return ['flowchart TD', ...nodes, ...edges].join('\n')
}

const dotText = (text: string): string =>
  `"${printable(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll(/\s+/g, ' ')}"`

/** Returns the graph in Graphviz DOT. Pure. */
export function dotOf(name: string, dag: Dag): string {
  const graph = dependencies(dag)
  const nodes = graph.nodes.map(
    id => `  ${dotText(id)} [label=${dotText(id).slice(0, -1)}\\n${dotText(dag.nodes[id]!.task).slice(1)}];`,
  )
  const edges = graphEdges(graph).map(({ from, to }) => `  ${dotText(from)} -> ${dotText(to)};`)
  return [`digraph ${dotText(name)} {`, '  node [shape=box];', ...nodes, ...edges, '}'].join('\n')
}
