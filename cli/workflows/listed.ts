import { ranksOf } from '../../core/workflows/graph.ts'
import { type StyledLine, widthOf } from '../status/styled-line.ts'
import type { GraphView, ScreenSize } from './draw.ts'

/** Before the names of a rank: whether it is alone, the first, between, or the last. */
const rails = { only: '─', first: '┬', between: '├', last: '└' } as const

/**
 * A graph as one line a rank, for where boxes have no room: `├ ✓ write  ● paint  12 more`. Where the ranks have none
 * either, those around what is live, and how many come before and behind. Pure.
 */
export function listed({ graph, label, live = new Set() }: GraphView, { width, height }: ScreenSize): StyledLine[] {
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

/** As many ranks as there is room for, with the live one among them; a line each is kept for what is left out. */
function window(count: number, live: number, height: number): [from: number, to: number] {
  if (count <= height) return [0, count]
  const kept = height - 2
  const from = Math.max(0, Math.min(live - Math.floor(kept / 2), count - kept))
  // The first and the last of the window need no line for what is left out on their side.
  if (from <= 1) return [0, height - 1]
  return from + kept >= count - 1 ? [count - height + 1, count] : [from, from + kept]
}

/** The names of one rank, those that live first in sight, and how many are not. */
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
    const own = widthOf(lines[0]) + 2
    if (at > 0 && used + own + (rest > 0 ? `${rest} more`.length : 0) > width) {
      line.push({ text: `${rest + 1} more`, look: 'faint' })
      break
    }
    line.push(look ? { text: lines[0], look } : { text: lines[0] }, { text: '  ' })
    used += own
  }
  return line
}
