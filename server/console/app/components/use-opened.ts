import { type RefObject, useEffect, useRef } from 'react'

/** Opens a `<details>` when something in it needs to be seen, such as a fault. Only people close it. */
export function useOpened(needed: boolean): RefObject<HTMLDetailsElement | null> {
  const details = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (needed && details.current) details.current.open = true
  }, [needed])
  return details
}
