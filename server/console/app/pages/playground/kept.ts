import { useEffect, useEffectEvent, useRef, useState } from 'react'
import { useSession } from '../../api/client.ts'

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

/** What the address begins with: the job or the file that is opened in the playground; empty for neither. */
export type Origin = string

/**
 * State of a task that this tab keeps: another task, another page and a reload leave it. `initial` counts where nothing is
 * kept, and where the address names another job or file than the one that the kept state began with. Signing out removes
 * it (`infer.person.`).
 */
export function useKept<T>(task: string, name: string, origin: Origin, initial: () => T) {
  const { session } = useSession()
  const key = `infer.person.playground.${session.token.id}.${task}.${name}`
  const [state, setState] = useState<T>(() => {
    const kept = readKept<T>(key)
    return kept && (origin === '' || origin === kept.origin) ? kept.value : initial()
  })
  useKeeping(state, value => {
    try {
      sessionStorage.setItem(key, JSON.stringify({ origin, value }))
    } catch {
      // The browser has no room: the state lasts as long as the page.
    }
  })
  return [state, setState] as const
}

function readKept<T>(key: string): { origin: Origin; value: T } | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(key) ?? 'null') as { origin: Origin; value: T } | null) ?? undefined
  } catch {
    return undefined
  }
}
