import type { PlacedBox } from '../../../components/graph/detours.ts'
import type { GraphLine, GraphToPlace, Places } from '../../../components/graph/layout.ts'
import { type Edit, moveNode, together } from './edits.ts'
import { boxOf, isWithin, padding, placeAround, placeFrame, spaceAbove } from './frames.ts'
import { boxOfCard, cardWidth, type GraphCard } from './graph.ts'
import type { Frame } from './workflow-document.ts'

/** The frames with nodes in them, the smallest first, and the smallest one around each card and each of them. */
interface Framing {
  frames: readonly Frame[]
  /** The frames without a node. They stay where they are. */
  notes: readonly Frame[]
  around: ReadonlyMap<GraphCard | Frame, Frame>
}

const areaOf = ({ size: { width, height } }: Frame): number => width * height

/** Returns what lies in which frame, before cards are placed anew. */
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
  const [frames, notes] = [sorted.filter(frame => inUse.has(frame)), sorted.filter(frame => !inUse.has(frame))]
  return { frames, notes, around }
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
    ...(frames.length > 0 && { margins: marginsOf(frames, around) }),
  }
}

/** What frames need around what is in them, those around others with it. */
function marginsOf(frames: readonly Frame[], around: Framing['around']) {
  const margins = frames.map(frame => {
    let [above, beside] = [0, 0]
    for (let one: Frame | undefined = frame; one; one = around.get(one)) {
      above += spaceAbove(one.text, cardWidth)
      beside += padding
    }
    return { above, beside }
  })
  return {
    above: Math.max(...margins.map(({ above }) => above)),
    beside: Math.max(...margins.map(({ beside }) => beside)),
  }
}

const meets = (one: PlacedBox, other: PlacedBox): boolean =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height

/** Returns how far down boxes must move to lie on none of the notes. */
function belowNotes(boxes: readonly PlacedBox[], notes: readonly PlacedBox[]): number {
  let down = 0
  for (;;) {
    const ways = notes.flatMap(note =>
      boxes.flatMap(box => (meets({ ...box, y: box.y + down }, note) ? [note.y + note.height + padding - box.y] : [])),
    )
    if (ways.length === 0) return down
    down = Math.max(...ways)
  }
}

/** Returns the edit that moves the nodes to their new places, and the frames with nodes around these. */
export function editOfArrangement(
  cards: readonly GraphCard[],
  { frames, notes, around }: Framing,
  places: Places,
): Edit {
  const placed = cards.flatMap(card => {
    const at = card.node && places.get(card.id)
    return at ? [{ card, box: { ...at, width: card.width, height: card.height } }] : []
  })
  const boxes = new Map(placed.map(({ card, box }): [GraphCard | Frame, typeof box] => [card, box]))
  for (const frame of frames) {
    const inside = [...boxes].flatMap(([part, box]) => (around.get(part) === frame ? [box] : []))
    boxes.set(frame, placeAround(inside, frame.text))
  }
  const down = belowNotes([...boxes.values()], notes.map(boxOf))
  const lower = (box: PlacedBox) => ({ ...box, y: box.y + down })
  return together(
    ...placed.map(({ card, box }) => moveNode(card.id, box.x, box.y + down)),
    ...frames.map(frame => placeFrame(frame.index, lower(boxes.get(frame)!))),
  )
}
