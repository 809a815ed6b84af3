import type { IncomingHttpHeaders } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { Failure, type FailureCode, type FailureDetail, type FailureMore, failures } from '../../core/failure.ts'
import { refused } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'

/**
 * Converts an error response of a server to a Failure with the same code and message. An unknown code, or a body of
 * another form, becomes the nearest code by status. Without `head` the error was an event of a stream.
 */
export function serverRefusal(
  url: string,
  body: string,
  head?: { status: number; headers: IncomingHttpHeaders },
): Failure {
  const error = errorInBody(body)
  const status = head?.status ?? 502
  const wait = Number(head?.headers['retry-after-ms'] ?? Number(head?.headers['retry-after'] ?? Number.NaN) * 1000)
  const requestId = head?.headers['x-request-id'] ?? error?.request_id
  const facts: FailureMore['facts'] = typeof requestId === 'string' ? { request_id: requestId } : {}
  if (!error)
    return refused(codeOf(status), `${url} answered with status ${status} and no error message. Is it an infer server?`)
  const known = typeof error.code === 'string' && Object.hasOwn(failures, error.code)
  return refused(known ? (error.code as FailureCode) : codeOf(status), withCommands(error.message), {
    facts,
    ...(typeof error.param === 'string' ? { param: error.param } : {}),
    ...(Number.isFinite(wait) && wait > 0 ? { retryAfterMs: wait } : {}),
    ...(Array.isArray(error.details) ? { details: error.details.filter(isDetail) } : {}),
  })
}

/** Resolves with what a call answers; with undefined where the server knows no such thing. */
export const ifFound = <T>(call: Promise<T>): Promise<T | undefined> =>
  call.catch((thrown: unknown) => {
    if (thrown instanceof Failure && thrown.code === 'not_found') return undefined
    throw thrown
  })

/** Rejects with this sentence where the server knows no such thing, because it names the command that lists them. */
export async function orAbsent<T>(call: Promise<T>, sentence: string): Promise<T> {
  const found = await ifFound(call)
  if (found === undefined) throw refused('not_found', sentence)
  return found
}

/** Rejects a token that lacks a scope with the command that shows what every token may see. */
export const orOwnLimits = <T>(call: Promise<T>): Promise<T> =>
  call.catch((thrown: unknown) => {
    if (!(thrown instanceof Failure) || thrown.code !== 'insufficient_scope') throw thrown
    throw refused(thrown.code, `${thrown.message} What is left of your own limits: infer token show`, {
      facts: thrown.facts,
    })
  })

interface ErrorBody {
  message: string
  code?: unknown
  param?: unknown
  details?: unknown
  request_id?: unknown
}

/** Returns the `error` of a response body in the form of the API; undefined for any other body. */
export function errorInBody(body: string): ErrorBody | undefined {
  try {
    const error = (JSON.parse(body) as { error?: ErrorBody } | null)?.error
    return typeof error?.message === 'string' ? error : undefined
  } catch {
    return undefined
  }
}

const isDetail = (value: unknown): value is FailureDetail => {
  const detail = value as Partial<FailureDetail> | null
  return typeof detail?.path === 'string' && typeof detail.message === 'string'
}

function codeOf(status: number): FailureCode {
  const exact = (Object.keys(failures) as FailureCode[]).find(code => failures[code].status === status)
  return exact ?? (status >= 500 ? 'worker_error' : 'invalid_value')
}

/** Routes that the server's messages name, and the command that does the same. */
const hints: readonly [route: RegExp, command: string][] = [
  [/`?GET \/(api\/model-status|(?:std|anthropic|replicate)\/v1\/models|ollama\/api\/tags)`?/g, 'infer ls'],
  [/`?POST \/std\/v1\/files`?/g, 'infer file upload'],
  [/`?POST \/std\/v1\/videos`?/g, 'infer video'],
  [/`?POST \/api\/workflows\/run`?/g, 'infer workflow run'],
  [/`?GET \/api\/workflows\/(\w+)\/executions`?/g, 'infer execution list --workflow $1'],
  [/`?GET \/api\/workflows`?/g, 'infer workflow list'],
  [/`?POST \/api\/workflow-executions\/(\w+)\/retry`?/g, 'infer execution retry $1'],
  [/`?POST \/api\/jobs\/(\w+)\/(cancel|retry)`?/g, 'infer job $2 $1'],
  [/`?DELETE \/api\/jobs\/(\{id\}|\w+)`?/g, 'infer job delete $1'],
  [/`?DELETE \/std\/v1\/files\/(\{id\}|[\w-]+)`?/g, 'infer file delete $1'],
  [/'\w+' to POST \/slug\/\{slug\}/g, 'use infer video --all-formats'],
  [/`?GET \/api\/jobs`?(?![/\w])/g, 'infer job list'],
  [/`?GET \/api\/gpu`?(?![/\w])/g, 'infer gpu list'],
  [/`?GET \/api\/engines`?(?![/\w])/g, 'infer engine list'],
]

/** Replaces the routes in a server's message by commands, for a terminal user. */
export const withCommands = (sentence: string): string =>
  hints.reduce((text, [route, command]) => text.replace(route, command), sentence)

/** Makes a stored message, such as the error of a job, printable: commands instead of routes, no control characters. */
export const storedSentence = (sentence: string): string => withCommands(printable(sentence))

/** Maximum time for which a request is repeated while its model loads. Milliseconds. */
const longestWaitMs = 600_000
/**
 * Maximum pause between requests, shorter than the server's estimate: a repeated request waits in the server.
 * Milliseconds.
 */
const longestPauseMs = 5_000

export interface LoadWaitOptions {
  signal?: AbortSignal
  /** Called before each repetition of the request. */
  onWait?: (failure: Failure) => void
}

/** Returns the time until which to wait for a model to load, on the monotonic clock. */
export const loadDeadline = (): number => performance.now() + longestWaitMs

/** Waits when the model is loading, as long as the server says but at most 5 s; throws any other error. */
export async function waitOrThrow(
  thrown: unknown,
  giveUpAt: number,
  { signal, onWait }: LoadWaitOptions,
): Promise<void> {
  if (!(thrown instanceof Failure) || thrown.code !== 'model_warming_up') throw thrown
  const pauseMs = Math.min(thrown.retryAfterMs ?? longestPauseMs, longestPauseMs)
  if (performance.now() + pauseMs > giveUpAt) throw thrown
  onWait?.(thrown)
  await wait(pauseMs, undefined, signal ? { signal } : {})
}

/** Sends the request, and repeats it while its model loads. */
export async function untilLoaded<T>(request: () => Promise<T>, options: LoadWaitOptions): Promise<T> {
  const giveUpAt = loadDeadline()
  for (;;) {
    try {
      return await request()
    } catch (thrown) {
      await waitOrThrow(thrown, giveUpAt, options)
    }
  }
}
