import type { QueryKey } from '@tanstack/react-query'
import { useEffect, useEffectEvent, useRef, useSyncExternalStore } from 'react'
import { ApiFailure, eventsOf, refresh, send } from './client.ts'

/** An event of the organization: of a job, an execution, a token. */
interface LiveEvent {
  id: string | undefined
  type: string
  // oxlint-disable-next-line no-explicit-any
  data: any
}

type LiveState = 'connecting' | 'live' | 'offline'

type Listener = (events: readonly LiveEvent[]) => void

/** Milliseconds until the next attempt: 1 s at first, 15 s at most. */
const delayMs = (failures: number): number => Math.min(15_000, 1_000 * 2 ** Math.min(failures, 4))
/** A connection that was silent for longer is dead: the server sends a comment every 15 s. */
const silenceMs = 40_000
/** A tab that is hidden for longer gives its connection back: browsers have six to a server for all tabs together. */
const hiddenMs = 10_000

/**
 * Opens the one event stream of this tab. It resumes after the last event when the connection breaks, the network comes
 * back, the machine wakes up or the tab is seen again. Listeners get the events of a frame together, so that a page renders once for all of
 * them.
 */
function openLive() {
  const listeners = new Set<Listener>()
  const watchers = new Set<() => void>()
  let state: LiveState = 'connecting'
  let lastId: string | undefined
  let controller: AbortController | undefined
  let retry: ReturnType<typeof setTimeout> | undefined
  let silence: ReturnType<typeof setTimeout> | undefined
  let rest: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let batch: LiveEvent[] = []
  const closed = new AbortController()

  function become(next: LiveState): void {
    if (state === next) return
    // What could not be read meanwhile, and what has changed, is read now.
    if (state === 'offline' && next === 'live') void refresh()
    state = next
    for (const watcher of watchers) watcher()
  }

  function deliver(): void {
    const events = batch
    batch = []
    for (const listener of listeners) listener(events)
  }

  function take(event: LiveEvent): void {
    if (event.id !== undefined) lastId = event.id
    // In a hidden tab no frame is drawn, so nothing would be delivered.
    if (batch.length === 0)
      if (document.hidden) setTimeout(deliver, 1_000)
      else requestAnimationFrame(deliver)
    batch.push(event)
  }

  async function connect(): Promise<void> {
    clearTimeout(retry)
    controller?.abort()
    const own = (controller = new AbortController())
    const heard = () => {
      clearTimeout(silence)
      silence = setTimeout(() => own === controller && void connect(), silenceMs)
    }
    try {
      const response = await send('/api/events', {
        headers: lastId === undefined ? {} : { 'last-event-id': lastId },
        signal: own.signal,
      })
      failures = 0
      become('live')
      heard()
      for await (const { id, event = 'message', data } of eventsOf(response, heard)) {
        heard()
        take({ id, type: event, data: JSON.parse(data) as unknown })
      }
    } catch (thrown) {
      if (own !== controller) return
      // The session has ended; signing in opens another stream.
      if (thrown instanceof ApiFailure && thrown.status === 401) return become('offline')
      failures++
    }
    if (own !== controller) return
    clearTimeout(silence)
    become(failures > 0 ? 'offline' : 'connecting')
    retry = setTimeout(() => void connect(), delayMs(failures))
  }

  /** Ends the connection until the tab is seen again. */
  function sleep(): void {
    clearTimeout(retry)
    clearTimeout(silence)
    controller?.abort()
    controller = undefined
    become('connecting')
  }

  const wake = () => {
    if (!document.hidden && state !== 'live') void connect()
  }
  const seen = () => {
    clearTimeout(rest)
    if (document.hidden) rest = setTimeout(sleep, hiddenMs)
    else wake()
  }
  const { signal } = closed
  addEventListener('online', wake, { signal })
  addEventListener('pageshow', wake, { signal })
  document.addEventListener('visibilitychange', seen, { signal })
  if (!document.hidden) void connect()

  return {
    get state(): LiveState {
      return state
    },
    /** Calls the listener when the state of the connection changes. */
    watch: (watcher: () => void) => join(watchers, watcher),
    /** Calls the listener with the events of a frame. */
    listen: (listener: Listener) => join(listeners, listener),
    /** Tries at once to connect again. */
    reconnect: () => void connect(),
    close(): void {
      closed.abort()
      clearTimeout(rest)
      sleep()
    },
  }
}

/** Adds a listener. Returns the function that removes it. */
function join<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

type Live = ReturnType<typeof openLive>

let live: Live | undefined

/** Opens the event stream of this tab, once signed in. */
export const startLive = (): Live => (live ??= openLive())

export function stopLive(): void {
  live?.close()
  live = undefined
}

/**
 * Calls `take` with the events of a frame whose type begins with one of the prefixes, such as `job.`; `snapshot` is the
 * first event after each connection.
 */
export function useLiveEvents(prefixes: readonly string[], take: Listener): void {
  const pass = useEffectEvent(take)
  const key = prefixes.join()
  useEffect(
    () =>
      startLive().listen(events => {
        const wanted = events.filter(({ type }) => key.split(',').some(prefix => type.startsWith(prefix)))
        if (wanted.length > 0) pass(wanted)
      }),
    [key],
  )
}

/**
 * Reads the queries below this key again after live events with these prefixes, once in `everyMs` at most: a thousand
 * events cost one request. `concerns` leaves out events of other things.
 */
export function useLiveRefresh(
  prefixes: readonly string[],
  key: QueryKey,
  { everyMs = 1_000, concerns = () => true }: { everyMs?: number; concerns?: (event: LiveEvent) => boolean } = {},
): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  useLiveEvents(prefixes, events => {
    if (!events.some(concerns)) return
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      void refresh(...key)
    }, everyMs)
  })
}

/** The state of the event stream. */
export const useLiveState = (): LiveState =>
  useSyncExternalStore(
    watcher => startLive().watch(watcher),
    () => startLive().state,
  )
