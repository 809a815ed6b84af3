import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import createClient, { defaultPathSerializer } from 'openapi-fetch'
import { dataDirectory } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import { failureOfThrown, noteAnswer, refused, unreadableAnswer } from '../terminal/exit-codes.ts'
import { type FoundServer, findServer, serverUnreachable } from './find-server.ts'
import type { Form } from './form.ts'
import { openSseParser, readText, type SseEvent, send } from './http.ts'
import { serverRefusal } from './refusal.ts'
import type { components, paths } from './types.generated.ts'

/** The objects of the API by their names in its description. */
export type Api = components['schemas']

interface RawRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Begins with a slash; variable parts are already encoded. */
  path: string
  /** Sent as JSON, except JSON text, and a stream, whose type is in `headers`. */
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
  /** Maximum time without any byte before the connection counts as lost. Milliseconds; no limit when omitted. */
  silenceMs?: number
}

/** Maximum bytes of a response without streaming (the limit for engine responses), and of an error body. */
const maxAnswerBytes = 64 << 20
const maxErrorBytes = 1 << 20
/** Base of the typed API; replaced by the address of the server. */
const typedBase = 'http://infer'
/** Maximum time without any byte of a file before the transfer fails. Milliseconds. */
const fileSilenceMs = 60_000
/** The same for the answer to a submission: the server fetches the URLs in the inputs before it answers. Milliseconds. */
const submissionSilenceMs = 180_000

/**
 * Sends requests to one server: INFER_URL with INFER_TOKEN if set, else the server that runs on the data directory, by
 * default that of this user. Throws an error response of the server as a Failure with the server's message.
 */
export function openClient(dataDir: string | undefined) {
  const folder = dataDirectory(dataDir)
  return clientOf(findServer(folder), folder)
}

/** Sends requests to this server, in the same way. */
export function clientOf(server: FoundServer, dataDir: string) {
  const { url, token, isRemote, certificate, inside } = server

  const open = ({ path, ...options }: RawRequest) => openAt(url + path, { ...options, token })

  /** Sends a request to an address of the server. Rejects with a Failure unless the answer is a success. */
  async function openAt(
    address: string,
    { body, signal, ...options }: Omit<RawRequest, 'path'> & { token: string | undefined },
  ): Promise<IncomingMessage> {
    let message: IncomingMessage
    try {
      const sent =
        body === undefined || typeof body === 'string' || body instanceof Readable ? body : JSON.stringify(body)
      message = await send({ ...options, url: address, body: sent, signal, certificate, connect: inside?.connect })
    } catch (cause) {
      signal?.throwIfAborted()
      throw serverUnreachable(server, dataDir, cause)
    }
    const status = message.statusCode ?? 0
    if (status >= 200 && status < 300) {
      // In this process the server has this version.
      if (!inside) noteAnswer(url)
      return message
    }
    const text = await readText(message, maxErrorBytes).catch(() => '')
    // In this process the server's failure is the command's own, with its cause and exit code.
    if (inside) throw failureOfThrown(inside.thrown())
    // The files of a remote server may be elsewhere. The query of their addresses is a secret.
    const from = address.startsWith(`${url}/`) ? url : address.split('?')[0]!
    throw serverRefusal(from, text, { status, headers: message.headers })
  }

  /** Answers a request of the typed API. Rejects with a Failure unless the answer is a success and JSON. */
  const answerWithin =
    (silenceMs?: number) =>
    async (request: globalThis.Request): Promise<Response> => {
      const { method, signal } = request
      const headers = Object.fromEntries(request.headers)
      const body = request.body === null ? undefined : await request.text()
      const path = request.url.slice(typedBase.length)
      const message = await open({ method: method as RawRequest['method'], path, headers, body, signal, silenceMs })
      // The types hold for infer only, and every answer of infer has the id of its request.
      if (message.headers['x-request-id'] === undefined) {
        message.destroy()
        throw unreadableAnswer(url + path, new Error('The response has no x-request-id.'))
      }
      const text = await wholeText(message, signal)
      parsed(path, text)
      return new Response(text, { headers: message.headers as Record<string, string> })
    }

  /** Parses a JSON body. Throws the Failure for an unreadable answer. */
  function parsed(path: string, text: string): unknown {
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw unreadableAnswer(url + path, cause)
    }
  }

  async function wholeText(message: IncomingMessage, signal: AbortSignal | undefined): Promise<string> {
    try {
      return await readText(message, maxAnswerBytes)
    } catch (cause) {
      signal?.throwIfAborted()
      throw broken(url, cause)
    }
  }

  const typedClient = (silenceMs?: number) =>
    createClient<paths>({ baseUrl: typedBase, fetch: answerWithin(silenceMs), pathSerializer: pathOf })

  /**
   * Returns the address of a signed URL. A server on this machine is reached directly, even if its public URL differs.
   */
  const ownAddress = (address: string): string => {
    const { href, pathname, search } = new URL(address, url)
    return isRemote ? href : url + pathname + search
  }

  return {
    url,
    isRemote,
    /** Whether the server is inside this process. */
    isInProcess: inside !== undefined,

    /**
     * The API with the types of its reference. A call resolves with an answer of success and rejects with a Failure, as
     * the other functions do.
     */
    api: typedClient(),

    /** The same for submissions, which fail if no byte arrives for three minutes. */
    submissions: typedClient(submissionSilenceMs),

    /** The same client with another token. */
    withToken: (other: string) => clientOf({ ...server, token: other }, dataDir),

    /** Posts to a path that is known only when the command runs, and returns the JSON body of the response. */
    async post(path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
      return parsed(path, await wholeText(await open({ method: 'POST', path, body, signal }), signal))
    },

    /**
     * Streams server-sent events, with POST when there is a body. Leaving the loop ends the request.
     */
    stream(path: string, body: unknown, signal?: AbortSignal, silenceMs?: number) {
      return this.events({ method: body === undefined ? 'GET' : 'POST', path, body, signal, silenceMs })
    },

    /** Streams the server-sent events that answer any request. Leaving the loop ends the request. */
    async *events(request: RawRequest): AsyncGenerator<SseEvent, void, void> {
      const { signal } = request
      const message = await open(request)
      const parser = openSseParser()
      try {
        for await (const bytes of message as AsyncIterable<Buffer>) yield* parser.feed(bytes)
      } catch (cause) {
        signal?.throwIfAborted()
        if (cause instanceof Failure) throw cause
        throw broken(url, cause)
      }
    },

    /** Sends a request and resolves with the headers and the bytes of the response as they arrive. */
    async raw(request: RawRequest): Promise<{ headers: IncomingHttpHeaders; bytes: AsyncIterable<Buffer> }> {
      const message = await open(request)
      return { headers: message.headers, bytes: bytesOf(message, request.signal) }
    },

    /**
     * Uploads a file to a signed URL of the server, without a token. Throws a Failure when the server refuses it.
     */
    async put(address: string, body: Readable, headers: Record<string, string>, signal?: AbortSignal): Promise<void> {
      const options = { method: 'PUT', token: undefined, body, headers, silenceMs: fileSilenceMs } as const
      const message = await openAt(ownAddress(address), { ...options, signal })
      await readText(message, maxErrorBytes).catch(() => '')
    },

    /** Sends a form with the token, and returns the JSON body of the response. Without a limit if `silenceMs` is 0. */
    async postForm(
      path: string,
      { body, headers }: Form,
      signal: AbortSignal,
      silenceMs = fileSilenceMs,
    ): Promise<unknown> {
      const message = await open({ method: 'POST', path, body: body(), headers, signal, silenceMs })
      return parsed(path, await wholeText(message, signal))
    },

    /** Downloads the content at a path of the API, with the token. Without a limit if `silenceMs` is 0. */
    content: (path: string, signal: AbortSignal, silenceMs?: number): AsyncGenerator<Buffer, void, void> =>
      download(url + path, token, signal, silenceMs),

    /** Downloads a file from a signed URL of a result, without a token. */
    bytes: (address: string, signal: AbortSignal): AsyncGenerator<Buffer, void, void> =>
      download(ownAddress(address), undefined, signal),
  }

  async function* download(
    from: string,
    withToken: string | undefined,
    signal: AbortSignal,
    silenceMs = fileSilenceMs,
  ): AsyncGenerator<Buffer, void, void> {
    const options = { method: 'GET', token: withToken, signal, silenceMs } as const
    yield* bytesOf(await openAt(from, options), signal)
  }

  async function* bytesOf(
    message: IncomingMessage,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Buffer, void, void> {
    try {
      yield* message as AsyncIterable<Buffer>
    } catch (cause) {
      signal?.throwIfAborted()
      throw broken(url, cause)
    }
  }
}
export type Client = ReturnType<typeof openClient>

/** Fills in a path of the typed API. A slug is the whole rest of its path: its slashes stay. */
function pathOf(path: string, parameters: Record<string, unknown>): string {
  const filled = defaultPathSerializer(path, parameters)
  return path.endsWith('/{slug}') ? filled.replaceAll('%2F', '/') : filled
}

/** Resolves with the data of a call of `api`. */
export async function dataOf<T>(call: Promise<{ data?: T }>): Promise<NonNullable<T>> {
  const { data } = await call
  if (typeof data === 'object' && data !== null) return data
  throw unreadableAnswer('the server', new Error('The response is no object.'))
}

/** Resolves with an object or a list that such an answer has as a member. */
export async function memberOf<T, Name extends keyof T>(call: Promise<{ data?: T }>, name: Name): Promise<T[Name]> {
  const member = (await dataOf(call))[name]
  if (typeof member === 'object' && member !== null) return member
  throw unreadableAnswer('the server', new Error(`The response has no ${String(name)}.`))
}

const broken = (url: string, cause: unknown): Failure =>
  refused('worker_error', `The connection to ${url} was lost during the response. Run the command again.`, { cause })

/** Maximum number of pages, in case a server always reports more. */
const maxPages = 10_000

/** Reads the entries of all pages, at most `limit`. `page` reads one, with at most `size` entries. */
export async function allPages<T>(
  page: (after: string | undefined, size: number) => Promise<{ entries: readonly T[]; next_cursor: string | null }>,
  limit = Infinity,
  largestPage = 100,
): Promise<T[]> {
  const found: T[] = []
  let after: string | undefined
  for (let count = 0; count < maxPages && found.length < limit; count++) {
    const { entries, next_cursor } = await page(after, Math.min(largestPage, limit - found.length))
    // The types hold for a server of this version only.
    if (!Array.isArray(entries) || next_cursor === undefined)
      throw unreadableAnswer('the server', new Error('The response is no page.'))
    found.push(...(entries as readonly T[]))
    if (next_cursor === null) break
    after = next_cursor
  }
  return found
}
