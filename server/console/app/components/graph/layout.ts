import dagre from '@dagrejs/dagre'

export interface Box {
  id: string
  width: number
  height: number
}

/** Leads from the right side of one box to the left side of another. */
export interface GraphLine {
  from: string
  to: string
}
/** What is sent to the worker. */
export interface GraphToPlace {
  boxes: readonly Box[]
  lines: readonly GraphLine[]
}
/** The upper left corner of each box, by its id. */
export type Places = ReadonlyMap<string, { x: number; y: number }>

/** Places boxes in ranks from left to right so that lines rarely cross. */
export function layoutGraph(boxes: readonly Box[], lines: readonly GraphLine[]): Places {
  const graph = new dagre.graphlib.Graph()
  graph.setGraph({ rankdir: 'LR', nodesep: 32, ranksep: 64 })
  graph.setDefaultEdgeLabel(() => ({}))
  // The library keeps ids as members of objects, where `__proto__` and `constructor` are no names.
  const keys = new Map(boxes.map(({ id }, at) => [id, String(at)]))
  for (const { id, width, height } of boxes) graph.setNode(keys.get(id)!, { width, height })
  for (const { from, to } of lines) {
    const [source, target] = [keys.get(from), keys.get(to)]
    if (source !== undefined && target !== undefined && source !== target) graph.setEdge(source, target)
  }
  dagre.layout(graph)
  return new Map(
    boxes.map(({ id, width, height }) => {
      const { x, y } = graph.node(keys.get(id)!) as { x: number; y: number }
      return [id, { x: Math.round(x - width / 2), y: Math.round(y - height / 2) }]
    }),
  )
}
