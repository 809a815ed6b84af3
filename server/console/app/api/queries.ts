import { QueryClient, queryOptions, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { ApiFailure, api, dataOf } from './client.ts'
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

/**
 * The tasks and the models that do them, read once for all pages. The console invalidates them when it adds or removes a
 * model; one that infer.yaml gains is seen after a minute.
 */
export const tasksQuery = queryOptions({
  queryKey: ['tasks'],
  queryFn: () => dataOf(api.GET('/api/tasks')),
  staleTime: 60_000,
})
