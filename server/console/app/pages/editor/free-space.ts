import { type FreeSpace, margin } from './document/view.ts'

/** Pixels above the graph: the choice of the view stands there. */
const top = 64

/** The part of the canvas that no panel covers, in pixels from its upper left corner. Undefined while there is no canvas. */
export function freeSpace(): FreeSpace | undefined {
  const canvas = document.querySelector('.react-flow')?.getBoundingClientRect()
  if (!canvas) return undefined
  const free = { left: margin, top: margin, right: canvas.width - margin, bottom: canvas.height - margin }
  for (const panel of document.querySelectorAll<HTMLElement>('[data-covers]')) {
    const { left, right, top: begin, bottom } = panel.getBoundingClientRect()
    // On a narrow screen they stand below the canvas.
    if (left >= canvas.right || right <= canvas.left || begin >= canvas.bottom || bottom <= canvas.top) continue
    free.top = top
    if (panel.dataset.covers === 'right') free.right = left - canvas.left - margin
    else if (panel.dataset.covers === 'left') free.left = right - canvas.left + margin
    else free.bottom = begin - canvas.top - margin
  }
  return free
}
