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
  const text = useSyncExternalStore(watch, () => {
    const clock = Math.max(now, Date.now() - 10_000)
    // The clock of the page is some seconds behind: what has just happened does not lie in the future.
    const isRecent = at * 1_000 > clock && at * 1_000 <= Date.now()
    return relativeText(at, isRecent ? at * 1_000 : clock)
  })
  return (
    <time dateTime={new Date(at * 1_000).toISOString()} title={dateText(at)} className="whitespace-nowrap">
      {text}
    </time>
  )
}
