import { QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { ApiFailure } from './failure.ts'
import { useLiveEvents } from './live.ts'

/** Answers that a page has read. An answer of the server is final, so only a missing one is asked for again. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, failure) => failures < 2 && failure instanceof ApiFailure && failure.status === 0,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
})

/** Milliseconds between two reads of the same list that live events cause. */
const refreshMs = 1_000

/**
 * Reads the queries below this key again after live events with these prefixes, at most once a second: a thousand events
 * cost one request.
 */
export function useLiveRefresh(prefixes: readonly string[], key: readonly unknown[]): void {
  const queries = useQueryClient()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  useLiveEvents(prefixes, () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      void queries.invalidateQueries({ queryKey: key })
    }, refreshMs)
  })
}
