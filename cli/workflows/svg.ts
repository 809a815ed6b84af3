import type { Dag } from '../../core/dag/definition.ts'
import { dependencies } from '../../core/workflows/plan.ts'
import { cutLine, lineWidth, printable } from '../terminal/styled-line.ts'
import { layOut } from './layout.ts'

/** Pixels of a column and of a line of the layout. */
const across = 8
const along = 16
const margin = 16
const maxTextWidth = 32
const lines = 2

const escaped = (text: string): string => printable(text).replaceAll(/[&<>"']/g, sign => `&#${sign.codePointAt(0)};`)

const style = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
  .task { font-size: 11px; fill: #59636e }
  rect { fill: #f6f8fa; stroke: #818b98; rx: 6 }
  path { fill: none; stroke: #818b98; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .task { fill: #9198a1 }
    rect { fill: #151b23; stroke: #656c76 } path { stroke: #656c76 }
  }
`

/**
 * Returns the graph as a self-contained SVG image for light and dark pages. Draws a graph with a cycle without its
 * edges. Pure.
 */
export function svgOf(name: string, dag: Dag): string {
  const graph = dependencies(dag)
  const texts = (id: string): [string, string] =>
    [id, dag.nodes[id]!.task].map(text => cutLine(text, maxTextWidth)) as never
  const measures = {
    lines,
    width: Number.POSITIVE_INFINITY,
    textWidth: (nodes: readonly string[]) => Math.max(...texts(nodes[0]!).map(lineWidth)),
  }
  const layout =
    layOut(graph, measures) ??
    layOut({ ...graph, successors: none(graph.nodes), predecessors: none(graph.nodes) }, measures)!
  // Curves need more height between ranks than lines of text.
  const tops = [...new Set(layout.boxes.map(({ top }) => top))].sort((a, b) => a - b)
  const rankAt = (y: number) => tops.findLastIndex(top => top <= y)
  const boxHeight = (lines + 1) * along
  const step = boxHeight + 3 * along
  const topOf = (y: number) => margin + rankAt(y) * step
  const x = (column: number) => margin + (column + 0.5) * across
  const curves = layout.links.map(({ from, to }) => {
    const [y1, y2] = [topOf(from.y) + boxHeight, topOf(to.y)]
    const bend = (y1 + y2) / 2
    return `<path d="M${x(from.x)} ${y1}C${x(from.x)} ${bend} ${x(to.x)} ${bend} ${x(to.x)} ${y2}"/>`
  })
  const passages = layout.passages.map(({ x: column, top }) => `<path d="M${x(column)} ${topOf(top)}v${boxHeight}"/>`)
  const boxes = layout.boxes.map(({ id, left, top, width }) => {
    const [title, task] = texts(id)
    const middle = x(left + (width - 1) / 2)
    return [
      `<g><title>${escaped(id)}: ${escaped(dag.nodes[id]!.model_id ?? 'no model')}</title>`,
      `<rect x="${margin + left * across}" y="${topOf(top)}" width="${width * across}" height="${boxHeight}"/>`,
      `<text x="${middle}" y="${topOf(top) + 20}">${escaped(title)}</text>`,
      `<text class="task" x="${middle}" y="${topOf(top) + 37}">${escaped(task)}</text></g>`,
    ].join('')
  })
  const width = layout.width * across + 2 * margin
  const height = Math.max(1, tops.length) * step - 3 * along + 2 * margin
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(name)}</title><style>${style}</style>`,
    ...curves,
    ...passages,
    ...boxes,
    '</svg>',
  ].join('\n')
}

const none = (nodes: readonly string[]) => new Map(nodes.map(node => [node, []]))
