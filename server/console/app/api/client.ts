import createClient from 'openapi-fetch'
import { createContext, useContext } from 'react'
import type { paths } from './types.generated.ts'

/** A failure of the API, or of the way to it, as a sentence that a person can read. */
export class ApiFailure extends Error {
  override name = 'ApiFailure'
  /** HTTP status; 0 if there was no answer. */
  readonly status: number
  readonly code: string
  /** The field that the failure is about. */
  readonly param: string | undefined
  /** Seconds after which to try again. */
  readonly retryAfter: number | undefined

  constructor(message: string, facts: { status: number; code: string; param?: string; retryAfter?: number }) {
    super(message)
    this.status = facts.status
    this.code = facts.code
    this.param = facts.param
    this.retryAfter = facts.retryAfter
  }
}

/** Returns the failure that an error answer says. */
export function failureOf(response: Response, body: unknown): ApiFailure {
  const { error } = (body ?? {}) as { error?: { message?: string; code?: string; param?: string | null } }
  const seconds = Number(response.headers.get('retry-after'))
  return new ApiFailure(error?.message ?? `The server answered ${response.status} without an explanation.`, {
    status: response.status,
    code: error?.code ?? 'unknown',
    ...(error?.param ? { param: error.param } : {}),
    ...(seconds > 0 ? { retryAfter: seconds } : {}),
  })
}

/** Returns the failure of a request that got no answer. */
export const unreachable = (): ApiFailure =>
  new ApiFailure('The server does not answer. Check that it runs and that this machine can reach it.', {
    status: 0,
    code: 'unreachable',
  })

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

export type Scope = 'user:read' | 'user:write' | 'admin:read' | 'admin:write'

/** Who is signed in: the token of the session, what it may do, and its organization. */
export interface Session {
  token: { id: string; name: string }
  organization: { id: string; name: string }
  scopes: Scope[]
  /** Whether the organization owns the machine: only then may it load models and read engine logs. */
  owns_machine: boolean
  /** Unix seconds. */
  expires_at: number
}

const json = { 'content-type': 'application/json' }

/** Rejects with ApiFailure 401 if nobody is signed in. */
export const readSession = async (): Promise<Session> => (await send('/api/session')).json() as Promise<Session>

/** Exchanges a token or a one-time code for a session. */
export const signIn = async (by: { token: string } | { code: string }): Promise<Session> =>
  (await send('/api/session', { method: 'POST', headers: json, body: JSON.stringify(by) })).json() as Promise<Session>

export const endSession = async (): Promise<void> => void (await send('/api/session', { method: 'DELETE' }))

interface SignedIn {
  session: Session
  /** Whether the session has the scope. What it may not do is not offered. */
  can: (scope: Scope) => boolean
  signOut: () => Promise<void>
}

export const SessionContext = createContext<SignedIn | undefined>(undefined)

/** Who is signed in. Only below the sign-in. */
export function useSession(): SignedIn {
  const signedIn = useContext(SessionContext)
  if (!signedIn) throw new Error('useSession is only for pages behind the sign-in.')
  return signedIn
}
