import { type KeyboardEvent, type PointerEvent, useCallback, useState } from 'react'
import { type SizeLimits, sizeAfterKey, withinLimits } from './sizes.ts'

/** The size of a panel in pixels, which this browser keeps under a name. */
export function useSize(name: string, first: number): [size: number, set: (size: number) => void] {
  const key = `infer.size.${name}`
  const [size, setSize] = useState(() => Number(localStorage.getItem(key)) || first)
  const set = useCallback(
    (next: number) => {
      setSize(next)
      try {
        localStorage.setItem(key, String(next))
      } catch {
        // The browser has no room: the size lasts as long as the page.
      }
    },
    [key],
  )
  return [size, set]
}

interface SizeHandleProps {
  /** What is made larger or smaller. */
  label: string
  /** The edge of the panel on which it stands. */
  edge: 'left' | 'top'
  size: number
  limits: SizeLimits
  set: (size: number) => void
}

/** The edge of a panel, which changes its size: by dragging, and by arrow keys, Home and End. */
export function SizeHandle({ label, edge, size, limits, set }: SizeHandleProps) {
  const [begun, setBegun] = useState<{ at: number; size: number }>()
  const isLeft = edge === 'left'
  const place = (event: PointerEvent) => (isLeft ? event.clientX : event.clientY)
  const press = (event: KeyboardEvent) => {
    const next = sizeAfterKey(event.key, size, limits, isLeft ? 'ArrowLeft' : 'ArrowUp')
    if (next === undefined) return
    event.preventDefault()
    set(next)
  }
  return (
    <div
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={isLeft ? 'vertical' : 'horizontal'}
      aria-valuenow={size}
      aria-valuemin={limits.least}
      aria-valuemax={limits.most}
      onKeyDown={press}
      onPointerDown={event => {
        event.currentTarget.setPointerCapture(event.pointerId)
        setBegun({ at: place(event), size })
      }}
      onPointerMove={event => begun && set(withinLimits(begun.size + begun.at - place(event), limits))}
      onPointerUp={() => setBegun(undefined)}
      onPointerCancel={() => setBegun(undefined)}
      className={`hover:bg-accent focus-visible:bg-accent absolute z-10 touch-none rounded ${begun ? 'bg-accent' : ''} ${
        isLeft ? 'inset-y-2 -left-1 w-2 cursor-ew-resize' : 'inset-x-2 -top-1 h-2 cursor-ns-resize'
      }`}
    />
  )
}
