import { ranksOf } from '../../core/workflows/graph.ts'
import { lineWidth, type StyledLine } from '../terminal/styled-line.ts'
import type { GraphView, ScreenSize } from './draw.ts'

/** Line characters before the names of a rank, by its position. */
const rails = { only: '─', first: '┬', between: '├', last: '└' } as const

/**
 * Draws a graph as one line per rank, if boxes do not fit: `├ ✓ write  ● paint  12 more`. If the ranks do not fit
 * either, draws those around active nodes, and the number of ranks above and below. Pure.
 */
export function listLayers({ graph, label, live = new Set() }: GraphView, { width, height }: ScreenSize): StyledLine[] {
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
