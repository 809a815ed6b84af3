import createClient from 'openapi-fetch'
import { type ApiFailure, failureOf, unreachable } from './failure.ts'
import type { paths } from './types.generated.ts'

export type { Schema } from './schema.ts'

/** Without this header the server ignores the cookie of the session, so that no other page can use it. */
const consoleHeaders = { 'x-infer-console': '1' }

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
  for (const [name, value] of Object.entries(consoleHeaders)) headers.set(name, value)
  const own = url instanceof Request ? url.signal : init.signal
  const signal = own ? AbortSignal.any([own, left.signal]) : left.signal
  let response: Response
  try {
    response = await fetch(url, { ...init, headers, signal, credentials: 'same-origin' })
  } catch (thrown) {
    if (own?.aborted) throw thrown
    throw unreachable()
  }
  if (response.ok) return response
  const failure = failureOf(response, await response.json().catch(() => undefined))
  if (failure.status === 401) for (const listener of ended) listener(failure)
  throw failure
}

/**
 * The API with the types of its reference. Every method resolves with an answer of success and rejects with ApiFailure:
 * `const { data } = await api.GET('/api/jobs/{id}', { params: { path: { id } } })`.
 */
const client = createClient<paths>({ baseUrl: location.origin, fetch: request => send(request) })

/** Resolves with the data of a call of `api`. */
export async function dataOf<T>(call: Promise<{ data?: T }>): Promise<NonNullable<T>> {
  return (await call).data as NonNullable<T>
}

export const api = client
