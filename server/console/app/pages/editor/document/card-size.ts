import { inputHandle, orderHandles, outputHandle, type Ports } from './ports.ts'

// The sizes of a card in pixels, as `node-card.tsx` draws it.
export const cardWidth = 248
const headerHeight = 54
const portHeight = 24
const unfoldHeight = 28
export const portSize = 12
/** The preview of a result below a card, by the category of the task. */
const previewHeights: Record<string, number> = { image: 162, video: 162, audio: 74, text: 82 }

/** The size of a card; with a category there is space for the preview of a result. */
export const sizeOf = ({ inputs, outputs }: Ports, preview?: string) => ({
  width: cardWidth,
  height:
    headerHeight +
    2 * unfoldHeight +
    portHeight * (inputs.length + outputs.length) +
    (preview === undefined ? 0 : (previewHeights[preview] ?? 0)),
})

/** Where the ports of a card are: the distance of their middle from the top. */
export function portPlaces({ inputs, outputs }: Ports, isNode: boolean) {
  const top = isNode ? headerHeight : headerHeight - 16
  const between = top + inputs.length * portHeight + (isNode ? unfoldHeight : 0)
  const middle = (at: number) => (at + 0.5) * portHeight
  return [
    ...(isNode
      ? [
          { id: orderHandles.after, y: top / 2, isOutput: false },
          { id: orderHandles.before, y: top / 2, isOutput: true },
        ]
      : []),
    ...inputs.map(({ path }, at) => ({ id: inputHandle(path), y: top + middle(at), isOutput: false })),
    ...outputs.map(({ path }, at) => ({ id: outputHandle(path), y: between + middle(at), isOutput: true })),
  ]
}
