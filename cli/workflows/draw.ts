import { type Graph, ranksOf } from '../../core/workflows/graph.ts'
import { cutLine, lineWidth, padded, type Span, type StyledLine } from '../terminal/styled-line.ts'
import { type GraphLayout, layOut } from './layout.ts'

/** Text and style of the box of a node, or of several nodes that share one. Texts that are too wide are cut. */
export interface Label {
  /** The lines of the box, the name first. */
  lines: readonly [string, ...string[]]
  look?: Span['look']
}

interface GraphView {
  graph: Graph
  /** Returns the label of the box of these nodes: one, or several that share a box. */
  label: (nodes: readonly string[]) => Label
  /** Active nodes, which stay visible when not all ranks fit. */
  live?: ReadonlySet<string>
}

/** Available columns and lines. */
interface ScreenSize {
  width: number
  height: number
}

/** Maximum columns of a name in a box. */
const maxTextWidth = 24

/**
 * Draws a graph: boxes by rank from top to bottom, with lines between them. If they do not fit, draws one line per
 * rank; if these do not fit either, the ranks around active nodes. Draws a graph with a cycle as a list of nodes. Pure.
 */
export function drawGraph({ graph, label, live = new Set() }: GraphView, size: ScreenSize): StyledLine[] {
  const ranks = ranksOf(graph)?.length ?? Number.POSITIVE_INFINITY
  const textLines = Math.max(1, ...graph.nodes.map(node => label([node]).lines.length))
  for (let lines = textLines; lines >= 1; lines--) {
    const textWidth = (nodes: readonly string[]) => {
      const each = label(nodes).lines.slice(0, lines).map(lineWidth)
      return Math.max(1, Math.min(Math.max(...each), maxTextWidth, size.width - 4))
    }
    // Skips the layout of a graph that is too high anyway: live graphs are drawn ten times per second.
    if (ranks * (lines + 3) - 1 > size.height) continue
    for (let width = size.width, attempt = 0; attempt < 3 && width > 0; attempt++) {
      const layout = layOut(graph, { textWidth, lines, width })
      if (!layout || layout.height > size.height) break
      if (layout.width <= size.width) return drawLayout(layout, label, lines)
      // Lines that pass a rank need columns too.
      width -= layout.width - size.width
    }
  }
  return listLayers({ graph, label, live }, size)
}

/** Number for passages; bundles in a channel have numbers from 1. */
const noBundle = 0xffffffff
const up = 1
const down = 2
const left = 4
const right = 8
/** Characters by the directions of their lines. Corners are round, so that lines do not look like boxes. */
const signs = [' ', '╵', '╷', '│', '╴', '╯', '╮', '┤', '╶', '╰', '╭', '├', '─', '┴', '┬', '┼'] as const

function drawLayout(layout: GraphLayout, label: GraphView['label'], lines: number): StyledLine[] {
  const ports = portsOf(layout)
  const rows: { at: number; span: Span }[][] = Array.from({ length: layout.height }, () => [])
  for (const { nodes, left: x, top, width, height } of layout.boxes) {
    const { lines: texts, look } = label(nodes)
    const styled = (text: string): Span => (look ? { text, look } : { text })
    const border = (line: number, from: string, to: string, port: string) => {
      const bar = Array.from({ length: width - 2 }, (_, at) => (ports.has(`${x + 1 + at},${line}`) ? port : '─'))
      rows[line]!.push({ at: x, span: styled(`${from}${bar.join('')}${to}`) })
    }
    border(top, '┌', '┐', '┴')
    for (let line = 0; line < lines; line++)
      rows[top + 1 + line]!.push({
        at: x,
        span: styled(`│ ${padded(cutLine(texts[line] ?? '', width - 4), width - 4)} │`),
      })
    border(top + height - 1, '└', '┘', '┬')
  }
  const linesOf = betweenBoxes(layout)
  return rows.map((row, y) => {
    const line: StyledLine = []
    let end = 0
    for (const { at, span } of row.sort((a, b) => a.at - b.at)) {
      line.push(...linesOf(y, end, at), span)
      end = at + lineWidth(span.text)
    }
    const rest = linesOf(y, end, layout.width)
    return rest.at(-1)?.look ? [...line, ...rest] : [...line, ...rest.slice(0, -1)]
  })
}

/**
 * Draws the lines between boxes. A line crosses the lines of other bundles and joins those of its own bundle. A large
 * drawing has a million cells, so each cell is a few bytes in typed arrays instead of an object.
 */
function betweenBoxes({
  width,
  height,
  channels,
  passages,
}: GraphLayout): (y: number, from: number, to: number) => Span[] {
  const across = new Uint8Array(width * height)
  const along = new Uint8Array(width * height)
  const acrossBundle = new Uint32Array(width * height)
  const joined = new Uint8Array(width * height)
  const vertical = (bundle: number, x: number, from: number, to: number, first: number, last: number) => {
    for (let y = from; y <= to; y++) {
      const cell = y * width + x
      along[cell]! |= (y === from ? first : up | down) & (y === to ? last : up | down)
      if (acrossBundle[cell] === bundle) joined[cell] = 1
    }
  }
  for (const { x, top, bottom } of passages) vertical(noBundle, x, top, bottom, up | down, up | down)
  const bundles = channels.flatMap(({ top, height: own, bundles }) =>
    bundles.map(({ sources, targets, track }, at) => {
      const ends = [...sources, ...targets]
      const [from, to] = [Math.min(...ends), Math.max(...ends)]
      return { number: at + 1, sources, targets, from, to, top, turn: top + track, bottom: top + own - 1 }
    }),
  )
  const bent = bundles.filter(({ from, to }) => from < to)
  for (const { number, from, to, turn } of bent)
    for (let x = from; x <= to; x++) {
      across[turn * width + x]! |= (x > from ? left : 0) | (x < to ? right : 0)
      acrossBundle[turn * width + x] = number
    }
  for (const { number, from, to, top, bottom } of bundles)
    if (from === to) vertical(number, from, top, bottom, up | down, up | down)
  for (const { number, sources, targets, top, turn, bottom } of bent) {
    for (const x of sources) vertical(number, x, top, turn, up | down, up)
    for (const x of targets) vertical(number, x, turn, bottom, down, up | down)
  }
  const signAt = (cell: number): string => {
    const horizontal = across[cell]!
    const vertical = along[cell]!
    return signs[horizontal === 0 || vertical === 0 || joined[cell] ? horizontal | vertical : up | down]!
  }
  return (y, from, to) => {
    const spans: Span[] = []
    for (let x = from; x < to; x++) {
      const sign = signAt(y * width + x)
      const last = spans.at(-1)
      if (last && (last.look === undefined) === (sign === ' ')) last.text += sign
      else spans.push(sign === ' ' ? { text: sign } : { text: sign, look: 'faint' })
    }
    return spans
  }
}

/** Returns the cells where lines leave and reach boxes. */
function portsOf({ channels }: GraphLayout): Set<string> {
  const ports = new Set<string>()
  for (const { top, height, bundles } of channels)
    for (const { sources, targets } of bundles) {
      for (const x of sources) ports.add(`${x},${top - 1}`)
      for (const x of targets) ports.add(`${x},${top + height}`)
    }
  return ports
}

/** Line characters before the names of a rank, by its position. */
const rails = { only: '─', first: '┬', between: '├', last: '└' } as const

/**
 * Draws a graph as one line per rank, if boxes do not fit: `├ ✓ write  ● paint  12 more`. If the ranks do not fit
 * either, draws those around active nodes, and the number of ranks above and below. Pure.
 */
function listLayers({ graph, label, live = new Set() }: GraphView, { width, height }: ScreenSize): StyledLine[] {
  const ranks = ranksOf(graph) ?? graph.nodes.map(node => [node])
  const found = ranks.findIndex(rank => rank.some(node => live.has(node)))
  const [from, to] = window(ranks.length, found < 0 ? 0 : found, Math.max(3, height))
  const lines: StyledLine[] = []
  if (from > 0) lines.push([{ text: `⋮ ${from} more above`, look: 'faint' }])
  for (let at = from; at < to; at++) {
    const rail =
      ranks.length === 1 ? rails.only : at === 0 ? rails.first : at === ranks.length - 1 ? rails.last : rails.between
    lines.push([{ text: `${rail} `, look: 'faint' }, ...names(ranks[at]!, label, live, width - 2)])
  }
  if (to < ranks.length) lines.push([{ text: `⋮ ${ranks.length - to} more below`, look: 'faint' }])
  return lines
}

/**
 * Returns as many ranks as fit, including the active one; reserves a line each for the hidden ranks above and below.
 */
function window(count: number, live: number, height: number): [from: number, to: number] {
  if (count <= height) return [0, count]
  const kept = height - 2
  const from = Math.max(0, Math.min(live - Math.floor(kept / 2), count - kept))
  // At the beginning and at the end of the graph only one of these lines is needed.
  if (from <= 1) return [0, height - 1]
  return from + kept >= count - 1 ? [count - height + 1, count] : [from, from + kept]
}

/** Draws the names of one rank, active nodes first, and the number of hidden nodes. */
function names(
  rank: readonly string[],
  label: GraphView['label'],
  live: ReadonlySet<string>,
  width: number,
): StyledLine {
  const shown = [...rank].sort((a, b) => Number(live.has(b)) - Number(live.has(a)))
  const line: StyledLine = []
  let used = 0
  for (const [at, node] of shown.entries()) {
    const { lines, look } = label([node])
    const rest = shown.length - at - 1
    const own = lineWidth(lines[0]) + 2
    if (at > 0 && used + own + (rest > 0 ? `${rest} more`.length : 0) > width) {
      line.push({ text: `${rest + 1} more`, look: 'faint' })
      break
    }
    line.push(look ? { text: lines[0], look } : { text: lines[0] }, { text: '  ' })
    used += own
  }
  return line
}
