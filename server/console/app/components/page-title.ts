import { useEffect, useSyncExternalStore } from 'react'

/** The name of what the page shows, such as a workflow; undefined for the page itself. */
let shown: string | undefined
let redraw = () => {}

function name(next: string | undefined): void {
  shown = next
  redraw()
}

function watch(listener: () => void): () => void {
  redraw = listener
  return () => {
    redraw = () => {}
  }
}

/** Puts the name of what is shown into the title of the window, as long as it is shown. */
export function useShownName(wanted: string | undefined): void {
  useEffect(() => {
    name(wanted)
    return () => name(undefined)
  }, [wanted])
}

/** The name of what is shown, for the title of the window. */
export const useTitleName = (): string | undefined => useSyncExternalStore(watch, () => shown)
