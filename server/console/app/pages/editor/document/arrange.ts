import type { GraphLine, GraphToPlace, Places } from '../../../components/graph/layout.ts'
import { type Edit, moveNode, together } from './edits.ts'
import { boxOf, isWithin, placeAround, placeFrame } from './frames.ts'
import { boxOfCard, type GraphCard } from './graph.ts'
import type { Frame } from './workflow-document.ts'

/** The frames with nodes in them, the smallest first, and the smallest one around each card and each of them. */
interface Framing {
  frames: readonly Frame[]
  around: ReadonlyMap<GraphCard | Frame, Frame>
}

const areaOf = ({ size: { width, height } }: Frame): number => width * height

/** Returns what lies in which frame, before cards are placed anew. A frame without a node stays where it is. */
export function framingOf(cards: readonly GraphCard[], all: readonly Frame[]): Framing {
  const sorted = all.toSorted((a, b) => areaOf(a) - areaOf(b))
  const around = new Map<GraphCard | Frame, Frame>()
  for (const card of cards) {
    const frame = card.node && sorted.find(one => isWithin(boxOfCard(card), boxOf(one)))
    if (frame) around.set(card, frame)
  }
  const inUse = new Set(around.values())
  for (const [at, frame] of sorted.entries()) {
    if (!inUse.has(frame)) continue
    const outer = sorted.slice(at + 1).find(one => isWithin(boxOf(frame), boxOf(one)))
    if (!outer) continue
    around.set(frame, outer)
    inUse.add(outer)
  }
  return { frames: sorted.filter(frame => inUse.has(frame)), around }
}

/** Returns the graph to be placed, in which the nodes of a frame are a group. The parameters stand beside it. */
export function graphToArrange(
  cards: readonly GraphCard[],
  lines: readonly GraphLine[],
  { frames, around }: Framing,
): GraphToPlace {
  const groupOf = (part: GraphCard | Frame) => {
    const frame = around.get(part)
    return frame && frames.indexOf(frame)
  }
  return {
    boxes: cards
      .filter(({ node }) => node)
      .map(card => ({ id: card.id, width: card.width, height: card.height, group: groupOf(card) })),
    lines: lines.map(({ from, to }) => ({ from, to })),
    groups: frames.map(groupOf),
  }
}

/** Returns the edit that moves the nodes to their new places, and the frames with nodes around these. */
export function editOfArrangement(cards: readonly GraphCard[], { frames, around }: Framing, places: Places): Edit {
  const placed = cards.flatMap(card => {
    const at = card.node && places.get(card.id)
    return at ? [{ card, box: { ...at, width: card.width, height: card.height } }] : []
  })
  const boxes = new Map(placed.map(({ card, box }): [GraphCard | Frame, typeof box] => [card, box]))
  for (const frame of frames) {
    const inside = [...boxes].flatMap(([part, box]) => (around.get(part) === frame ? [box] : []))
    boxes.set(frame, placeAround(inside, frame.text))
  }
  return together(
    ...placed.map(({ card, box }) => moveNode(card.id, box.x, box.y)),
    ...frames.map(frame => placeFrame(frame.index, boxes.get(frame)!)),
  )
}
