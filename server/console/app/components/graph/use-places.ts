import { useEffect, useMemo, useRef, useState } from 'react'
import { type Box, type GraphLine, layoutGraph, type Places } from './layout.ts'
import type { LayoutAnswer, LayoutRequest } from './layout-worker.ts'

/** Up to this number of boxes placing takes less than a frame. */
const fewBoxes = 30

/**
 * Where the boxes of a graph stand. A large graph is placed in a worker, and meanwhile the places are those from before:
 * none at first. Boxes and lines with the same content keep their places, so callers may make them anew.
 */
export function usePlaces(boxes: readonly Box[], lines: readonly GraphLine[]): Places {
  const content = JSON.stringify([
    boxes.map(({ id, width, height }) => [id, width, height]),
    lines.map(({ from, to }) => [from, to]),
  ])
  const graph = useRef({ boxes, lines })
  graph.current = { boxes, lines }
  const few = boxes.length <= fewBoxes
  const now = useMemo(
    () => (few ? layoutGraph(graph.current.boxes, graph.current.lines) : undefined),
    // `content` stands for the boxes and lines.
    [few, content],
  )
  const [later, setLater] = useState<Places>(new Map())
  // `content` stands for the boxes and lines.
  useEffect(() => {
    if (few) return
    const controller = new AbortController()
    void placeInWorker(graph.current.boxes, graph.current.lines).then(places => {
      if (!controller.signal.aborted) setLater(places)
    })
    return () => controller.abort()
  }, [few, content])
  return now ?? later
}

let worker: Worker | undefined
let requests = 0

function placeInWorker(boxes: readonly Box[], lines: readonly GraphLine[]): Promise<Places> {
  const address = document.querySelector<HTMLMetaElement>('meta[name="layout-worker"]')!.content
  const current = (worker ??= new Worker(address, { type: 'module' }))
  const number = ++requests
  return new Promise(resolve => {
    const answered = ({ data }: MessageEvent<LayoutAnswer>) => {
      if (data.number !== number) return
      current.removeEventListener('message', answered)
      current.removeEventListener('error', failed)
      resolve(data.places)
    }
    // A worker that cannot be loaded must not leave an empty page.
    const failed = () => {
      worker = undefined
      current.removeEventListener('message', answered)
      resolve(layoutGraph(boxes, lines))
    }
    current.addEventListener('message', answered)
    current.addEventListener('error', failed, { once: true })
    const request: LayoutRequest = {
      number,
      boxes: boxes.map(plain),
      lines: lines.map(({ from, to }) => ({ from, to })),
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a worker, not to a window
    current.postMessage(request)
  })
}

const plain = ({ id, width, height }: Box): Box => ({ id, width, height })
