import type { Schema } from '../../api/schema.ts'
import type { Box, GraphLine } from '../../components/graph/layout.ts'
import { referencesOfText, visitTexts } from '../editor/document/references.ts'

type Execution = Schema<'Execution'>

/** Pixels of each card in the graph. */
export const cardSize = { width: 256, height: 100 }

interface Dag {
  nodes: Record<string, { inputs?: unknown; for_each?: unknown; when?: unknown }>
  edges?: GraphLine[]
}

/** Returns the edges of a graph: those that are written, and those that references make. */
export function edgesOf({ nodes, edges = [] }: Dag): GraphLine[] {
  const found = [...edges]
  for (const [to, { inputs, for_each, when }] of Object.entries(nodes))
    visitTexts([inputs, for_each, when], text => {
      for (const { root, path } of referencesOfText(text))
        if (root === 'nodes' && String(path[0]) in nodes) found.push({ from: String(path[0]), to })
    })
  return [...new Map(found.map(edge => [`${edge.from} ${edge.to}`, edge])).values()]
}

/** The nodes of an execution as boxes, and the edges between them. They change with the graph only, not with its state. */
export function graphOfExecution({ dag }: Pick<Execution, 'dag'>): { boxes: Box[]; edges: GraphLine[] } {
  const graph = (dag ?? { nodes: {} }) as Dag
  return { boxes: Object.keys(graph.nodes).map(id => ({ id, ...cardSize })), edges: edgesOf(graph) }
}
