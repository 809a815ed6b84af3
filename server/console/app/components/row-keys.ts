import { type RefObject, useEffect, useEffectEvent } from 'react'
import { neighbourOf } from './neighbour.ts'

/** Whether the arrow keys mean something else there. */
const hasOwnKeys = (target: EventTarget | null): boolean =>
  target instanceof Element &&
  target.closest(
    'textarea, select, pre, video, audio, dialog, [aria-haspopup], [role=tab], input:not([type=checkbox]), [role=listbox]',
  ) !== null

/**
 * The arrow keys go from row to row of a list, and take the row that is open beside the list along; Escape closes it. The
 * link of a row has its id in `data-row`. `show` opens a row, or none.
 */
export function useRowKeys(
  list: RefObject<HTMLElement | null>,
  ids: readonly string[],
  open: string | undefined,
  show: (id: string | undefined) => void,
): void {
  const press = useEffectEvent((event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || hasOwnKeys(event.target)) return
    const linkOf = (id: string) => list.current?.querySelector<HTMLElement>(`a[data-row="${id}"]`)
    if (event.key === 'Escape' && open !== undefined) {
      show(undefined)
      linkOf(open)?.focus()
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const row = event.target instanceof Element ? event.target.closest('tr') : null
      const from = row?.querySelector<HTMLElement>('a[data-row]')?.dataset['row'] ?? open
      const next = neighbourOf(ids, from, event.key === 'ArrowDown' ? 1 : -1)
      if (next === undefined) return
      linkOf(next)?.focus()
      if (open !== undefined) show(next)
    } else return
    event.preventDefault()
  })
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => press(event)
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
}
