import { useEffect, useState } from 'react'
import { shellText } from '../text/shell.ts'

/** Milliseconds in which nothing is shown: most answers are there before, and a flash is worse than nothing. */
const patienceMs = 300

/** Grey lines in the place of what is being read. */
export function Loading({ lines = 3 }: { lines?: number }) {
  const [shown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), patienceMs)
    return () => clearTimeout(timer)
  }, [])
  if (!shown) return null
  return (
    <div role="status" className="space-y-3">
      <span className="sr-only">{shellText.loading}</span>
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} aria-hidden className="bg-raised h-5 animate-pulse rounded" />
      ))}
    </div>
  )
}
