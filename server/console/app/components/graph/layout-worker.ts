import { type GraphToPlace, layoutGraph } from './layout.ts'

// The page waits for the answer without holding a frame: placing 200 boxes takes longer than one.
addEventListener('message', ({ data: { boxes, lines }, ports: [answer] }: MessageEvent<GraphToPlace>) => {
  answer!.postMessage(layoutGraph(boxes, lines))
})
