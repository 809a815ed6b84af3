import { type Box, type GraphLine, layoutGraph, type Places } from './layout.ts'

/** A graph to place, and the places as they come back with the same number. */
export interface LayoutRequest {
  number: number
  boxes: readonly Box[]
  lines: readonly GraphLine[]
}
export interface LayoutAnswer {
  number: number
  places: Places
}

// The page waits for the answer without holding a frame: placing 200 boxes takes longer than one.
addEventListener('message', ({ data: { number, boxes, lines } }: MessageEvent<LayoutRequest>) => {
  const answer: LayoutAnswer = { number, places: layoutGraph(boxes, lines) }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has one page
  self.postMessage(answer)
})
