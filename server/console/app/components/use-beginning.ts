import { useLayoutEffect } from 'react'

/** Shows the beginning of a page that is opened from far down in another, such as the row of a long list. */
export function useBeginning(): void {
  useLayoutEffect(() => {
    // The page scrolls on a narrow screen, and the part beside the navigation on a wide one.
    scrollTo(0, 0)
    document.getElementById('main')?.parentElement?.scrollTo(0, 0)
  }, [])
}
