import { type Graph, ranksOf } from '../../core/workflows/graph.ts'
import { cut, type Line, padded, type Span, widthOf } from '../status/line.ts'
import { type Layout, layOut, type Net } from './layout.ts'
import { listed } from './listed.ts'

/** How a node, or several that share a box, is shown. Texts may be wider than there is room: they are cut. */
export interface Label {
  /** The lines of the box, the name first. */
  lines: readonly [string, ...string[]]
  look?: Span['look']
}

export interface Picture {
  graph: Graph
  /** What stands in the box of these nodes: one, or those that share a box. */
  label: (nodes: readonly string[]) => Label
  /** Nodes at which something happens: they are kept in sight where not all ranks have room. */
  live?: ReadonlySet<string>
}

/** Columns and lines that there are. */
export interface Room {
  width: number
  height: number
}

/** A longer name is cut. */
const widestText = 24

/**
 * A graph as lines: boxes by rank, from top to bottom, with lines between them. Where the lines have no room, one line a
 * rank; where those have none either, ranks around what is live. A graph with a cycle is a list of its nodes. Pure.
 */
export function drawGraph({ graph, label, live = new Set() }: Picture, room: Room): Line[] {
  const ranks = ranksOf(graph)?.length ?? Number.POSITIVE_INFINITY
  const textLines = Math.max(1, ...graph.nodes.map(node => label([node]).lines.length))
  for (let lines = textLines; lines >= 1; lines--) {
    const textWidth = (nodes: readonly string[]) => {
      const each = label(nodes).lines.slice(0, lines).map(widthOf)
      return Math.max(1, Math.min(Math.max(...each), widestText, room.width - 4))
    }
    // A chain of hundreds is not laid out, ten times a second, only to be found too high.
    if (ranks * (lines + 3) - 1 > room.height) continue
    for (let width = room.width, attempt = 0; attempt < 3 && width > 0; attempt++) {
      const layout = layOut(graph, { textWidth, lines, width })
      if (!layout || layout.height > room.height) break
      if (layout.width <= room.width) return drawLayout(layout, label, lines)
      // Lines that go past need room as well.
      width -= layout.width - room.width
    }
  }
  return listed({ graph, label, live }, room)
}

const up = 1
const down = 2
const left = 4
const right = 8
/** By the directions in which lines lead. Corners are round, so that no line looks like a box. */
const signs = [' ', '╵', '╷', '│', '╴', '╯', '╮', '┤', '╶', '╰', '╭', '├', '─', '┴', '┬', '┼'] as const

/** One place between boxes. Lines of different nets meet in it only where they cross. */
interface Cell {
  across: number
  along: number
  acrossNet: Net | undefined
  alongNets: Set<Net>
}

function drawLayout(layout: Layout, label: Picture['label'], lines: number): Line[] {
  const edges = edgeCells(layout)
  const ports = portsOf(layout)
  const rows: { at: number; span: Span }[][] = Array.from({ length: layout.height }, () => [])
  for (const { nodes, left: x, top, width, height } of layout.boxes) {
    const { lines: texts, look } = label(nodes)
    const painted = (text: string): Span => (look ? { text, look } : { text })
    const border = (line: number, from: string, to: string, port: string) => {
      const bar = Array.from({ length: width - 2 }, (_, at) => (ports.has(`${x + 1 + at},${line}`) ? port : '─'))
      rows[line]!.push({ at: x, span: painted(`${from}${bar.join('')}${to}`) })
    }
    border(top, '┌', '┐', '┴')
    for (let line = 0; line < lines; line++)
      rows[top + 1 + line]!.push({
        at: x,
        span: painted(`│ ${padded(cut(texts[line] ?? '', width - 4), width - 4)} │`),
      })
    border(top + height - 1, '└', '┘', '┬')
  }
  for (const [place, cell] of edges) {
    const [x = 0, y = 0] = place.split(',').map(Number)
    rows[y]!.push({ at: x, span: { text: signOf(cell), look: 'faint' } })
  }
  return rows.map(row => {
    const line: Line = []
    let end = 0
    for (const { at, span } of row.sort((a, b) => a.at - b.at)) {
      if (at > end) line.push({ text: ' '.repeat(at - end) })
      const last = line.at(-1)
      if (last && at === end && last.look === span.look) last.text += span.text
      else line.push({ ...span })
      end = at + widthOf(span.text)
    }
    return line
  })
}

/** A line that crosses one of another net passes over it; one of the same net, or to the same node, joins it. */
function signOf({ across, along, acrossNet, alongNets }: Cell): string {
  const joined = across === 0 || along === 0 || (acrossNet !== undefined && alongNets.has(acrossNet))
  return signs[joined ? across | along : up | down]!
}

function edgeCells({ channels, passages }: Layout): Map<string, Cell> {
  const cells = new Map<string, Cell>()
  const cellAt = (x: number, y: number): Cell => {
    const key = `${x},${y}`
    const before = cells.get(key)
    if (before) return before
    const cell: Cell = { across: 0, along: 0, acrossNet: undefined, alongNets: new Set() }
    cells.set(key, cell)
    return cell
  }
  const vertical = (net: Net | undefined, x: number, from: number, to: number, first: number, last: number) => {
    for (let y = from; y <= to; y++) {
      const cell = cellAt(x, y)
      cell.along |= (y === from ? first : up | down) & (y === to ? last : up | down)
      if (net) cell.alongNets.add(net)
    }
  }
  for (const { x, top, bottom } of passages) vertical(undefined, x, top, bottom, up | down, up | down)
  for (const { top, height, nets } of channels)
    for (const net of nets) {
      const { sources, targets, track } = net
      const ends = [...sources, ...targets]
      const [from, to] = [Math.min(...ends), Math.max(...ends)]
      const straight = from === to
      const turn = top + track
      for (const x of sources)
        vertical(net, x, top, straight ? top + height - 1 : turn, up | down, straight ? up | down : up)
      if (straight) continue
      for (let x = from; x <= to; x++) {
        const cell = cellAt(x, turn)
        cell.across |= (x > from ? left : 0) | (x < to ? right : 0)
        cell.acrossNet = net
      }
      for (const x of targets) vertical(net, x, turn, top + height - 1, down, up | down)
    }
  return cells
}

/** Where lines leave and reach boxes. */
function portsOf({ channels }: Layout): Set<string> {
  const ports = new Set<string>()
  for (const { top, height, nets } of channels)
    for (const { sources, targets } of nets) {
      for (const x of sources) ports.add(`${x},${top - 1}`)
      for (const x of targets) ports.add(`${x},${top + height}`)
    }
  return ports
}
