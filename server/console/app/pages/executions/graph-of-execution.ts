import type { Schema } from '../../api/schema.ts'
import { layoutGraph } from '../../components/graph/layout.ts'
import { referencesIn, visitTexts } from '../editor/document/references.ts'

type Execution = Schema<'Execution'>

/** Pixels of each card in the graph. */
export const cardSize = { width: 256, height: 100 }

interface Dag {
  nodes: Record<string, { inputs?: unknown }>
  edges?: { from: string; to: string }[]
}

/** Returns the edges of a graph: those that are written, and those that references in the inputs make. */
export function edgesOf({ nodes, edges = [] }: Dag): { from: string; to: string }[] {
  const found = [...edges]
  for (const [to, { inputs }] of Object.entries(nodes))
    visitTexts(inputs, text => {
      for (const { root, path } of referencesIn(text))
        if (root === 'nodes' && String(path[0]) in nodes) found.push({ from: String(path[0]), to })
    })
  return [...new Map(found.map(edge => [`${edge.from} ${edge.to}`, edge])).values()]
}

/** Where the nodes of an execution stand, and the edges between them. It changes with the graph only, not with its state. */
export function graphOfExecution({ dag }: Pick<Execution, 'dag'>) {
  const graph = (dag ?? { nodes: {} }) as Dag
  const edges = edgesOf(graph)
  const boxes = Object.keys(graph.nodes).map(id => ({ id, ...cardSize }))
  return { places: layoutGraph(boxes, edges), edges }
}
