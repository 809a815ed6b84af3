import { isMap, isSeq } from 'yaml'
import { boundsOf } from '../../../components/graph/bounds.ts'
import type { PlacedBox } from '../../../components/graph/detours.ts'
import { type Edit, makeMaps, setValue, together } from './edits.ts'
import type { Frame } from './workflow-document.ts'

const framesPath = ['dag', 'frames'] as const

/** The id of a frame in the graph; no card can have it, because `cardKey` writes `%` otherwise. */
export const frameKey = (index: number): string => `%frame${index}`
export const frameOfKey = (key: string): number | undefined =>
  key.startsWith('%frame') ? Number(key.slice('%frame'.length)) : undefined

/** Where a frame stands, in pixels of the graph. */
export const boxOf = ({ position, size }: Pick<Frame, 'position' | 'size'>): PlacedBox => ({
  ...position,
  ...size,
})

/** Pixels between a frame and the cards in it; its text stands above them. */
export const padding = 32
const heading = 40
/** Of each further line of its text, which is broken where about so many pixels for each letter do not fit. */
const lineHeight = 22
const letterWidth = 8
/** Of a frame around nothing. */
const noteSize = { width: 320, height: 160 }

/** Pixels above the cards in a frame with this text, if the cards are so wide together. */
export function spaceAbove(text: string, width: number): number {
  const lines = text.split('\n').map(line => Math.max(1, Math.ceil((line.length * letterWidth) / width)))
  return padding + heading + lineHeight * (lines.reduce((sum, count) => sum + count, 0) - 1)
}

/** Where a frame with this text stands around boxes, of which there is at least one. */
export function placeAround(boxes: readonly PlacedBox[], text: string): PlacedBox {
  const { x, y, width, height } = boundsOf(boxes)
  const above = spaceAbove(text, width)
  return { x: x - padding, y: y - above, width: width + 2 * padding, height: height + above + padding }
}

/** Where a new frame stands: around boxes, or with its middle at a point if there are none. */
export const placeOfFrame = (boxes: readonly PlacedBox[], middle: { x: number; y: number }): PlacedBox =>
  boxes.length === 0
    ? { x: middle.x - noteSize.width / 2, y: middle.y - noteSize.height / 2, ...noteSize }
    : placeAround(boxes, '')

/** Whether one lies wholly in the other. */
export const isWithin = (inner: PlacedBox, outer: PlacedBox): boolean =>
  inner.x >= outer.x &&
  inner.y >= outer.y &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height

const membersOf = ({ x, y, width, height }: PlacedBox) => ({
  position: { x: Math.round(x), y: Math.round(y) },
  size: { width: Math.round(width), height: Math.round(height) },
})

export const addFrame =
  (text: string, place: PlacedBox): Edit =>
  document => {
    makeMaps(document, ['dag'])
    const frame = document.createNode({ text, ...membersOf(place) })
    for (const member of ['position', 'size']) {
      const value = frame.get(member, true)
      if (isMap(value)) value.flow = true
    }
    const frames = document.getIn(framesPath)
    if (isSeq(frames)) frames.add(frame)
    else document.setIn(framesPath, document.createNode([frame]))
  }

export const placeFrame = (index: number, place: PlacedBox): Edit =>
  together(
    ...Object.entries(membersOf(place)).flatMap(([member, values]) =>
      Object.entries(values).map(([name, value]) => setValue([...framesPath, index, member, name], value)),
    ),
  )

export const setFrameText = (index: number, text: string): Edit => setValue([...framesPath, index, 'text'], text)

export const removeFrames =
  (indices: readonly number[]): Edit =>
  document => {
    const frames = document.getIn(framesPath)
    if (!isSeq(frames)) return
    frames.items = frames.items.filter((_, index) => !indices.includes(index))
    if (frames.items.length === 0) document.deleteIn(framesPath)
  }
