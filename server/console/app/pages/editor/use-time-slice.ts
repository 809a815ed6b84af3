import { useEffect, useState } from 'react'

/** So many parts are drawn in one frame: script, style, layout and paint of each take a few milliseconds. */
const partsAtOnce = 6

/** Parts that wait to be drawn, the first that came first. */
const waiting = new Set<() => void>()
let frame: number | undefined

function drawNext(): void {
  for (const draw of [...waiting].slice(0, partsAtOnce)) {
    waiting.delete(draw)
    draw()
  }
  frame = waiting.size > 0 ? requestAnimationFrame(drawNext) : undefined
}

/** Whether this part may be drawn whole: a few in each frame. At once, if it needs no time slice. */
export function useTimeSlice(needsOne: boolean): boolean {
  const [isDrawn, setDrawn] = useState(!needsOne)
  useEffect(() => {
    if (isDrawn) return
    const draw = () => setDrawn(true)
    waiting.add(draw)
    // The frame that comes first draws what the pointer has brought into view.
    frame ??= requestAnimationFrame(() => {
      frame = requestAnimationFrame(drawNext)
    })
    return () => void waiting.delete(draw)
  }, [isDrawn])
  return isDrawn || !needsOne
}
