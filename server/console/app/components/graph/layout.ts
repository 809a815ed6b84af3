import dagre from '@dagrejs/dagre'

export interface Box {
  id: string
  width: number
  height: number
  /** The group that it belongs to, by its number. */
  group?: number | undefined
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
  /** Boxes that stay together: for each group the one that it belongs to. Each has a box in it, or in a group of it. */
  groups?: readonly (number | undefined)[]
  /** Pixels that what is drawn around groups takes above them, and on each other side. */
  margins?: { above: number; beside: number }
}
/** The upper left corner of each box, by its id. */
export type Places = ReadonlyMap<string, { x: number; y: number }>

/** Places boxes in ranks from left to right so that lines rarely cross. */
export function layoutGraph({ boxes, lines, groups = [], margins }: GraphToPlace): Places {
  const graph = new dagre.graphlib.Graph({ compound: groups.length > 0 })
  // The library keeps `edgesep` more than `nodesep` between a box and a group that it is not in.
  const room = margins && { edgesep: margins.above + margins.beside, ranksep: 32 + 2 * margins.beside }
  graph.setGraph({ rankdir: 'LR', nodesep: 32, ranksep: 64, ...room })
  graph.setDefaultEdgeLabel(() => ({}))
  // The library keeps ids as members of objects, where `__proto__` and `constructor` are no names.
  const keys = new Map(boxes.map(({ id }, at) => [id, String(at)]))
  for (const { id, width, height } of boxes) graph.setNode(keys.get(id)!, { width, height })
  const within = (key: string, group: number | undefined) => group !== undefined && graph.setParent(key, `g${group}`)
  for (const at of groups.keys()) graph.setNode(`g${at}`, {})
  for (const [at, outer] of groups.entries()) within(`g${at}`, outer)
  for (const { id, group } of boxes) within(keys.get(id)!, group)
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
