import {
  keepPreviousData,
  QueryClient,
  type QueryKey,
  queryOptions,
  type UseQueryOptions,
  useInfiniteQuery,
  useQuery,
} from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { ApiFailure, api, dataOf, useSession } from './client.ts'
import { type LiveEvent, useLiveEvents } from './live.ts'

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

/** Reads the queries below this key again. */
export const refresh = (...queryKey: QueryKey): Promise<void> => queryClient.invalidateQueries({ queryKey })

/** Reads an answer of the API. The key begins with the name of the page. */
export const useAnswer = <T>(
  queryKey: QueryKey,
  call: () => Promise<{ data?: T }>,
  options?: Omit<UseQueryOptions<NonNullable<T>>, 'queryKey' | 'queryFn'>,
) => useQuery<NonNullable<T>>({ ...options, queryKey, queryFn: () => dataOf(call()) })

/** Reads a list page by page; `after` is where the page before ended. With `keeps` the rows of another key stay meanwhile. */
export const usePages = <T extends { next_cursor: string | null }>(
  queryKey: QueryKey,
  call: (after: string | undefined) => Promise<{ data?: T }>,
  keeps = false,
) =>
  useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => dataOf(call(pageParam)),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    ...(keeps ? { placeholderData: keepPreviousData } : {}),
  })

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

/**
 * The tasks and the models that do them, read once for all pages. The console invalidates them when it adds or removes a
 * model; one that infer.yaml gains is seen after a minute.
 */
export const tasksQuery = queryOptions({
  queryKey: ['tasks'],
  queryFn: () => dataOf(api.GET('/api/tasks')),
  staleTime: 60_000,
})

/** The models with their state, read every three seconds. */
export const useModels = () =>
  useAnswer(['models', 'list'], () => api.GET('/api/model-status'), { refetchInterval: 3_000 })

/** The newest tokens of an organization; undefined until they are read, and for a session that may not. */
export function useTokens(organization: string, isWanted = true) {
  const { can } = useSession()
  const params = { path: { organization }, query: { limit: 100 } }
  const { data } = useAnswer(
    ['tokens', organization],
    () => api.GET('/api/organizations/{organization}/tokens', { params }),
    { enabled: isWanted && can('admin:read'), staleTime: 60_000 },
  )
  return data?.tokens
}

/** Whether a job or an execution has ended. */
export const hasEnded = ({ status }: { status: string }): boolean =>
  !['pending', 'processing', 'running'].includes(status)
