import { useSyncExternalStore } from 'react'
import { dateText, relativeText } from './format.ts'

let now = Date.now()
const readers = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

/** One clock for all times on the page. */
function watch(reader: () => void): () => void {
  readers.add(reader)
  timer ??= setInterval(() => {
    now = Date.now()
    for (const one of readers) one()
  }, 10_000)
  return () => {
    readers.delete(reader)
    if (readers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** A time as distance from now; the exact time is shown when the pointer rests on it. `at` is in Unix seconds. */
export function Time({ at }: { at: number }) {
  // The clock ticks every 10 s: what has just happened must not appear to lie in the future.
  const text = useSyncExternalStore(watch, () => {
    const real = Date.now()
    return relativeText(at, Math.max(now, real - 10_000, Math.min(at * 1_000, real)))
  })
  return (
    <time dateTime={new Date(at * 1_000).toISOString()} title={dateText(at)} className="whitespace-nowrap">
      {text}
    </time>
  )
}
