import type { NodeChange } from '@xyflow/react'
import { useCallback, useMemo, useRef } from 'react'
import type { Edit } from './document/edits.ts'
import { boxOf, frameKey, frameOfKey, isWithin, placeFrame } from './document/frames.ts'
import { boxOfCard, type GraphCard } from './document/graph.ts'
import { cardKey } from './document/ports.ts'
import { useEditor } from './editor-context.ts'
import type { FrameNode } from './frame-card.tsx'

type Place = { id: string; position: { x: number; y: number } }

/** The frames of the workflow for the graph, and the moves of what lies in them. */
export function useFrames(cards: readonly GraphCard[]) {
  const { readOnly, workflow } = useEditor()
  const { frames } = workflow
  /** What moves with the frames that a person moves: what lay in each at the beginning. */
  const carried = useRef(new Map<number, ReadonlySet<string>>())

  const frameNodes = useMemo(
    () =>
      frames.map(
        (frame): FrameNode => ({
          id: frameKey(frame.index),
          type: 'frame',
          position: frame.position,
          ...frame.size,
          // Behind the cards and the lines, also while it is selected.
          zIndex: -2_000,
          data: { frame },
          draggable: !readOnly,
          deletable: !readOnly,
          connectable: false,
        }),
      ),
    [frames, readOnly],
  )

  const within = useCallback(
    (index: number): ReadonlySet<string> => {
      const frame = frames.find(one => one.index === index)
      if (!frame) return new Set()
      const place = boxOf(frame)
      return new Set([
        ...cards.filter(card => card.node && isWithin(boxOfCard(card), place)).map(({ id }) => cardKey(id)),
        ...frames.filter(one => one !== frame && isWithin(boxOf(one), place)).map(one => frameKey(one.index)),
      ])
    },
    [cards, frames],
  )

  /** Adds to the changes of the library those of what a moved frame takes along, unless they are moved themselves. */
  const withCarried = useCallback(
    <Change extends NodeChange>(changes: readonly Change[], now: readonly Place[]): (Change | NodeChange)[] => {
      const own = new Set(changes.flatMap(change => ('id' in change ? [change.id] : [])))
      const more = changes.flatMap((change): NodeChange[] => {
        if (change.type !== 'position' || change.dragging === undefined || !change.position) return []
        const index = frameOfKey(change.id)
        if (index === undefined) return []
        const { position, dragging } = change
        const before = now.find(({ id }) => id === change.id)?.position ?? position
        const [right, down] = [position.x - before.x, position.y - before.y]
        if (!carried.current.has(index)) carried.current.set(index, within(index))
        const inside = carried.current.get(index)!
        const moved = now.filter(({ id }) => inside.has(id) && !own.has(id))
        return moved.map(({ id, position: { x, y } }) => ({
          id,
          type: 'position',
          dragging,
          position: { x: x + right, y: y + down },
        }))
      })
      const ends = changes.some(change => change.type === 'position' && change.dragging === false)
      if (ends) carried.current.clear()
      return [...changes, ...more]
    },
    [within],
  )

  /** The edit of a frame that was moved to this place; undefined for one that stands there already. */
  const moved = useCallback(
    (index: number, { x, y }: { x: number; y: number }): Edit | undefined => {
      const frame = frames.find(one => one.index === index)
      if (!frame || (Math.round(x) === frame.position.x && Math.round(y) === frame.position.y)) return undefined
      return placeFrame(index, { ...boxOf(frame), x, y })
    },
    [frames],
  )
  return { frameNodes, withCarried, moved }
}
