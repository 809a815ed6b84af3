import {
  keepPreviousData,
  QueryClient,
  type QueryKey,
  queryOptions,
  type UseQueryOptions,
  useInfiniteQuery,
  useQuery,
} from '@tanstack/react-query'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import createClient from 'openapi-fetch'
import { createContext, useContext } from 'react'
import type { Schema } from './schema.ts'
import type { paths } from './types.generated.ts'

export type { Schema } from './schema.ts'

/** A failure of the API, or of the way to it, as a sentence that a person can read. */
export class ApiFailure extends Error {
  override name = 'ApiFailure'
  /** HTTP status; 0 if there was no answer. */
  readonly status: number
  readonly code: string
  /** The field that the failure is about. */
  readonly param: string | undefined
  /** The job that it is about. */
  readonly jobId: string | undefined

  constructor(message: string, status: number, code: string, param?: string, jobId?: string) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
    this.jobId = jobId
  }
}

/** The field that a failure is about. */
export const paramOf = (failure: unknown): string | undefined =>
  failure instanceof ApiFailure ? failure.param : undefined

/** Whether a failure says that there is no such thing, or no longer. */
export const isGone = (failure: unknown): boolean => failure instanceof ApiFailure && failure.status === 404

/** Listeners that learn that the session has ended. */
const ended = new Set<(failure: ApiFailure) => void>()

/** Calls the listener when an answer says that the session has ended. Returns the function that removes it. */
export function onSessionEnd(listener: (failure: ApiFailure) => void): () => void {
  ended.add(listener)
  return () => ended.delete(listener)
}

/**
 * Ends the requests of a page that is left. Browsers keep such a page for the way back, with its open connections, and
 * have only six to a server: without this the seventh page would wait for ever.
 */
let left = new AbortController()
addEventListener('pagehide', () => left.abort())
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) left = new AbortController()
})

/** Sends a request as this session; rejects with ApiFailure if nothing answers or the answer is an error. */
export async function send(url: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(url instanceof Request ? url.headers : init.headers)
  // Without this header the server ignores the cookie of the session, so that no other page can use it.
  headers.set('x-infer-console', '1')
  const own = url instanceof Request ? url.signal : init.signal
  const signal = own ? AbortSignal.any([own, left.signal]) : left.signal
  return await answerOf(fetch(url, { ...init, headers, signal, credentials: 'same-origin' }), own)
}

/** The answer to a request that was sent; rejects as `send` does. `own`: the signal of its caller. */
async function answerOf(sent: Promise<Response>, own?: AbortSignal | null): Promise<Response> {
  let response: Response
  try {
    response = await sent
  } catch (thrown) {
    if (own?.aborted) throw thrown
    const sentence = 'The server does not answer. Check that it runs and that this machine can reach it.'
    throw new ApiFailure(sentence, 0, 'unreachable')
  }
  if (response.ok) return response
  const { status } = response
  const body = (await response.json().catch(() => undefined)) as Partial<Schema<'ErrorResponse'>> | undefined
  const { message, code, param, job_id } = body?.error ?? {}
  const sentence = message ?? `The server answered ${status} without an explanation.`
  const failure = new ApiFailure(sentence, status, code ?? 'unknown', param || undefined, job_id)
  if (status === 401) for (const listener of ended) listener(failure)
  throw failure
}

/** The events of an answer as they come; in between the server sends comments. */
export const eventsOf = (response: Response, onComment?: () => void) =>
  response.body!.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream({ onComment }))

/** Sends a JSON body to a path that the types of the API do not know, or whose answer is streamed. */
export const sendJson = (path: string, body: unknown, signal?: AbortSignal): Promise<Response> =>
  send(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: signal ?? null,
  })

/**
 * The API with the types of its reference. Every method resolves with an answer of success and rejects with ApiFailure:
 * `const { data } = await api.GET('/api/jobs/{id}', { params: { path: { id } } })`.
 */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: request => send(request) })

/** Reads the session; `sent`: the request for it, if it was sent before. */
export const readSession = (sent?: Promise<Response>): Promise<Session> =>
  dataOf(api.GET('/api/session', sent ? { fetch: () => answerOf(sent) } : {}))

/** The parameters of a request: those in its path, and its query. */
export const at = <const Path, const Query = undefined>(path: Path, query?: Query) => ({ params: { path, query } })

/** Resolves with the data of a call of `api`. */
export async function dataOf<T>(call: Promise<{ data?: T }>): Promise<NonNullable<T>> {
  return (await call).data as NonNullable<T>
}

/**
 * Who is signed in: the token of the session, what it may do, and its organization. Only the organization that owns the
 * machine may load models and read engine logs.
 */
export type Session = Schema<'Session'>
export type Scope = Session['scopes'][number]

interface SignedIn {
  session: Session
  /** Whether the session has the scope. What it may not do is not offered. */
  can: (scope: Scope) => boolean
  /** The same for what only the owner of the machine may do. */
  ownerCan: (scope: Scope) => boolean
  signOut: () => Promise<void>
}

export const SessionContext = createContext<SignedIn | undefined>(undefined)

/** Who is signed in. Only below the sign-in. */
export function useSession(): SignedIn {
  const signedIn = useContext(SessionContext)
  if (!signedIn) throw new Error('useSession is only for pages behind the sign-in.')
  return signedIn
}

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

/** Reads a list page by page; `after` is where the page before ended. With `keeps` the rows of another key stay meanwhile; it waits until it is `enabled`. */
export const usePages = <T extends { next_cursor: string | null }>(
  queryKey: QueryKey,
  call: (after: string | undefined) => Promise<{ data?: T }>,
  keeps = false,
  enabled = true,
) =>
  useInfiniteQuery({
    queryKey,
    enabled,
    queryFn: ({ pageParam }) => dataOf(call(pageParam)),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    ...(keeps ? { placeholderData: keepPreviousData } : {}),
  })

/**
 * The tasks and the models that do them, read once for all pages. The console invalidates them when it adds or removes a
 * model; one that infer.yaml gains is seen after a minute.
 */
export const tasksQuery = queryOptions({
  queryKey: ['tasks'],
  queryFn: () => dataOf(api.GET('/api/tasks')),
  staleTime: 60_000,
})

/** When an answer is read again. Who reads it more seldom gets what others have read of it. */
interface Timing {
  refetchInterval: number
  staleTime?: number
  enabled?: boolean
}

/** The models with their state, read every three seconds unless `timing` says otherwise. */
export const useModels = (timing: Timing = { refetchInterval: 3_000 }) =>
  useAnswer(['models', 'list'], () => api.GET('/api/model-status'), timing)

/** What the whole machine does, for its owner. */
export const useMachine = (timing: Timing) =>
  useAnswer(['overview', 'status'], () => api.GET('/api/system/status'), timing)

/** What the token of the session has used of its limits. */
export const useOwnUse = (timing: Timing) => useAnswer(['usage', 'me'], () => api.GET('/api/me'), timing)

/** Whether a job or an execution has ended. */
export const hasEnded = ({ status }: { status: string }): boolean =>
  !['pending', 'processing', 'running'].includes(status)
