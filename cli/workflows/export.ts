import type { Dag } from '../../core/dag/definition.ts'
import { edgesOf } from '../../core/workflows/graph.ts'
import { dependencies } from '../../core/workflows/plan.ts'
import { printable } from '../paint.ts'

/** A name between quotes in Mermaid, in which entities are written with a number sign. */
const mermaidText = (text: string): string =>
  printable(text)
    .replaceAll('#', '#35;')
    .replaceAll('"', '#quot;')
    .replaceAll(/[<>&]/g, sign => `#${sign.codePointAt(0)};`)
    .replaceAll(/\s+/g, ' ')

/** The graph as a Mermaid flowchart. Nodes have numbers for names: ids may be words of the language. Pure. */
export function mermaidOf(dag: Dag): string {
  const graph = dependencies(dag)
  const number = new Map(graph.nodes.map((id, at) => [id, `n${at}`]))
  const nodes = graph.nodes.map(
    id => `  ${number.get(id)!}["${mermaidText(id)}<br/>${mermaidText(dag.nodes[id]!.task)}"]`,
  )
  const edges = edgesOf(graph).map(({ from, to }) => `  ${number.get(from)!} --> ${number.get(to)!}`)
  return ['flowchart TD', ...nodes, ...edges].join('\n')
}

const dotText = (text: string): string =>
  `"${printable(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll(/\s+/g, ' ')}"`

/** The graph in the language of Graphviz. Pure. */
export function dotOf(name: string, dag: Dag): string {
  const graph = dependencies(dag)
  const nodes = graph.nodes.map(
    id => `  ${dotText(id)} [label=${dotText(id).slice(0, -1)}\\n${dotText(dag.nodes[id]!.task).slice(1)}];`,
  )
  const edges = edgesOf(graph).map(({ from, to }) => `  ${dotText(from)} -> ${dotText(to)};`)
  return [`digraph ${dotText(name)} {`, '  node [shape=box];', ...nodes, ...edges, '}'].join('\n')
}
