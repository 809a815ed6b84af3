import { useEffect, useEffectEvent, useRef } from 'react'

/** Milliseconds between two writes of something that changes all the time, such as an answer that grows. */
const pauseMs = 1_000

/** Hands a value that has changed to `keep`: at once if the last time is a second ago, and at the latest when the page is left. */
export function useKeeping<T>(value: T, keep: (value: T) => void): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const keptAt = useRef(Number.NEGATIVE_INFINITY)
  const isKept = useRef(true)
  const first = useRef(value)
  const flush = useEffectEvent(() => {
    clearTimeout(timer.current)
    timer.current = undefined
    if (isKept.current) return
    isKept.current = true
    keptAt.current = performance.now()
    keep(value)
  })
  useEffect(() => {
    // What was there in the beginning was read, or is nothing yet.
    if (value === first.current) return
    isKept.current = false
    const leftMs = keptAt.current + pauseMs - performance.now()
    if (leftMs <= 0) flush()
    else timer.current ??= setTimeout(() => flush(), leftMs)
  }, [value])
  useEffect(() => {
    const leave = () => flush()
    addEventListener('pagehide', leave)
    return () => {
      removeEventListener('pagehide', leave)
      flush()
    }
  }, [])
}
