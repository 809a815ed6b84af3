import { boundsOf } from '../../../components/graph/bounds.ts'
import type { PlacedBox } from '../../../components/graph/detours.ts'

/** Pixels between the graph and the edges of its space. */
export const margin = 16

/** A part of the canvas, in pixels from its upper left corner. */
export interface FreeSpace {
  left: number
  top: number
  right: number
  bottom: number
}

/**
 * Where the canvas is moved to, and its zoom, so that the boxes stand in the middle of the free space. If they are too
 * large for it at the smallest zoom, their beginning is there.
 */
export function viewOf(
  boxes: readonly PlacedBox[],
  { left, top, right, bottom }: FreeSpace,
  { minZoom, maxZoom }: { minZoom: number; maxZoom: number },
): { x: number; y: number; zoom: number } {
  const { x, y, width, height } = boundsOf(boxes)
  const [freeWidth, freeHeight] = [Math.max(1, right - left), Math.max(1, bottom - top)]
  const zoom = Math.max(minZoom, Math.min(maxZoom, freeWidth / width, freeHeight / height))
  const spare = (free: number, size: number) => Math.max(0, (free - size * zoom) / 2)
  // A graph that is too high is read from its middle, where the lines begin.
  const above = height * zoom > freeHeight ? (freeHeight - height * zoom) / 2 : spare(freeHeight, height)
  return { x: left + spare(freeWidth, width) - x * zoom, y: top + above - y * zoom, zoom }
}
