import { useEffect, useMemo, useState } from 'react'
import { type Box, type GraphLine, type GraphToPlace, layoutGraph, type Places } from './layout.ts'

/** Up to this number of boxes placing takes less than a frame. */
const fewBoxes = 30

/**
 * Where the boxes of a graph stand. A large graph is placed in a worker, and meanwhile the places are those from before:
 * none at first. Boxes and lines with the same content keep their places, so callers may make them anew.
 */
export function usePlaces(boxes: readonly Box[], lines: readonly GraphLine[]): Places {
  const content = JSON.stringify({
    boxes: boxes.map(({ id, width, height }) => ({ id, width, height })),
    lines: lines.map(({ from, to }) => ({ from, to })),
  } satisfies GraphToPlace)
  const graph = useMemo(() => JSON.parse(content) as GraphToPlace, [content])
  const few = boxes.length <= fewBoxes
  const now = useMemo(() => (few ? layoutGraph(graph) : undefined), [few, graph])
  const [later, setLater] = useState<Places>(new Map())
  useEffect(() => {
    if (few) return
    const controller = new AbortController()
    void placeInWorker(graph).then(places => {
      if (!controller.signal.aborted) setLater(places)
    })
    return () => controller.abort()
  }, [few, graph])
  return now ?? later
}

/** Resolves with the places of the boxes of a graph, once; those of a large one come from a worker. */
export const placeGraph = (graph: GraphToPlace): Promise<Places> =>
  graph.boxes.length <= fewBoxes ? Promise.resolve(layoutGraph(graph)) : placeInWorker(withoutMore(graph))

/** What boxes and lines have beside cannot be sent to a worker. */
const withoutMore = ({ boxes, lines, groups, margins }: GraphToPlace): GraphToPlace => ({
  boxes: boxes.map(({ id, width, height, group }) => ({ id, width, height, group })),
  lines: lines.map(({ from, to }) => ({ from, to })),
  ...(groups ? { groups } : {}),
  ...(margins ? { margins } : {}),
})

let worker: Worker | undefined

function placeInWorker(graph: GraphToPlace): Promise<Places> {
  const address = document.querySelector<HTMLMetaElement>('meta[name="layout-worker"]')!.content
  const current = (worker ??= new Worker(address, { type: 'module' }))
  const { port1: answer, port2 } = new MessageChannel()
  return new Promise(resolve => {
    answer.addEventListener('message', ({ data }: MessageEvent<Places>) => {
      current.removeEventListener('error', failed)
      resolve(data)
    })
    answer.start()
    // A worker that cannot be loaded must not leave an empty page.
    const failed = () => {
      worker = undefined
      resolve(layoutGraph(graph))
    }
    current.addEventListener('error', failed, { once: true })
    current.postMessage(graph, [port2])
  })
}
