import type { PlacedBox } from './detours.ts'

/** The smallest box around others, of which there is at least one. */
export function boundsOf(boxes: readonly PlacedBox[]): PlacedBox {
  const [x, y] = [Math.min(...boxes.map(box => box.x)), Math.min(...boxes.map(box => box.y))]
  return {
    x,
    y,
    width: Math.max(...boxes.map(box => box.x + box.width)) - x,
    height: Math.max(...boxes.map(box => box.y + box.height)) - y,
  }
}
