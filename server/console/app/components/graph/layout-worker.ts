import { type GraphToPlace, layoutGraph } from './layout.ts'

// The page waits for the answer without holding a frame: placing 200 boxes takes longer than one.
addEventListener('message', ({ data, ports: [answer] }: MessageEvent<GraphToPlace>) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a port, not to a window
  answer!.postMessage(layoutGraph(data))
})
