import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import createClient from 'openapi-fetch'
import type { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { refused } from '../terminal/exit-codes.ts'
import { type FoundServer, findServer, serverUnreachable } from './find-server.ts'
import { readText, send } from './http.ts'
import { serverRefusal } from './refusal.ts'
import { openSseParser, type SseEvent } from './sse.ts'
import type { paths } from './types.generated.ts'

export interface ClientRequest<S extends z.ZodType> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Begins with a slash; variable parts are already encoded. */
  path: string
  /** Sent as JSON, except JSON text, and a stream, whose type is in `headers`. */
  body?: unknown
  /** Schema of the response body. */
  answer: S
  headers?: Record<string, string>
  signal?: AbortSignal
  /** Maximum time without any byte before the connection counts as lost. Milliseconds; no limit when omitted. */
  silenceMs?: number
}
type RawRequest = Omit<ClientRequest<z.ZodType>, 'answer'>

/** Cause of a Failure whose response body this program could not parse; the Failure has the message for the user. */
export class UnreadableAnswer extends Error {}

/** Maximum bytes of a response without streaming (the limit for engine responses), and of an error body. */
const maxAnswerBytes = 64 << 20
const maxErrorBytes = 1 << 20
/** Stands for the address of the server in requests of the typed API, so that paths can be told from it. */
const typedBase = 'http://infer'
/** Maximum time without any byte of a file before the transfer fails. Milliseconds. */
const fileSilenceMs = 60_000

/**
 * Sends requests to one server: INFER_URL with INFER_TOKEN if set, else the server that runs on the data directory.
 * Throws an error response of the server as a Failure with the server's message.
 */
export const openClient = (dataDir: string) => clientOf(findServer(dataDir), dataDir)

/** Sends requests to this server, in the same way. */
export function clientOf(server: FoundServer, dataDir: string) {
  const { url, token, isRemote, certificate, connect } = server

  async function open({ path, body, signal, ...options }: RawRequest) {
    let message: IncomingMessage
    try {
      const sent =
        body === undefined || typeof body === 'string' || body instanceof Readable ? body : JSON.stringify(body)
      message = await send({ ...options, url: url + path, token, body: sent, signal, certificate, connect })
    } catch (cause) {
      signal?.throwIfAborted()
      throw serverUnreachable(server, dataDir, cause)
    }
    const status = message.statusCode ?? 0
    if (status >= 200 && status < 300) return message
    const failure = serverRefusal(url, await readText(message, maxErrorBytes).catch(() => ''), {
      status,
      headers: message.headers,
    })
    if (!connect) throw failure
    // In this process the server's refusal is the command's own failure: no request can be found in a log.
    const { code, param, details } = failure
    throw new Failure(code, failure.message, { ...(param ? { param } : {}), ...(details ? { details } : {}) })
  }

  /** Answers a request of the typed API. Rejects with a Failure unless the answer is a success and JSON. */
  async function answerOf(request: globalThis.Request): Promise<Response> {
    const { method, signal } = request
    const body = request.body === null ? undefined : await request.text()
    const path = request.url.slice(typedBase.length)
    const message = await open({ method: method as RawRequest['method'], path, body, signal })
    // The types hold for infer only, and every answer of infer has the id of its request.
    if (message.headers['x-request-id'] === undefined) {
      message.destroy()
      throw unreadable(path, new Error('The response has no x-request-id.'))
    }
    const text = await wholeText(message, signal)
    try {
      return Response.json(JSON.parse(text))
    } catch (cause) {
      throw unreadable(path, cause)
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

  const unreadable = (path: string, cause: unknown): Failure =>
    refused(
      'worker_error',
      `This version of infer cannot read the response of ${url}${path}. Is it an infer server of another version?`,
      { cause: new UnreadableAnswer(String(cause), { cause }) },
    )

  const api = createClient<paths>({ baseUrl: typedBase, fetch: answerOf })

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
    isInProcess: connect !== undefined,

    /**
     * The API with the types of its reference. A call resolves with an answer of success and rejects with a Failure, as
     * the other functions do.
     */
    api,

    /** The same client with another token. */
    withToken: (other: string) => clientOf({ ...server, token: other }, dataDir),

    /** Sends a request and returns the JSON body of the response. */
    async ask<S extends z.ZodType>(request: ClientRequest<S>): Promise<z.output<S>> {
      return (await this.askWithHeaders(request)).answer
    },

    /** Sends a request and returns the JSON body and the headers of the response. */
    async askWithHeaders<S extends z.ZodType>(
      request: ClientRequest<S>,
    ): Promise<{ answer: z.output<S>; headers: IncomingHttpHeaders }> {
      const { answer, ...rest } = request
      const { path, signal } = rest
      const message = await open(rest)
      const text = await wholeText(message, signal)
      try {
        return { answer: answer.parse(JSON.parse(text)), headers: message.headers }
      } catch (cause) {
        throw unreadable(path, cause)
      }
    },

    /**
     * Streams server-sent events, with POST when there is a body. Leaving the loop ends the request.
     */
    async *stream(
      path: string,
      body: unknown,
      signal?: AbortSignal,
      silenceMs?: number,
    ): AsyncGenerator<SseEvent, void, void> {
      const method = body === undefined ? 'GET' : 'POST'
      const more = { ...(signal ? { signal } : {}), ...(silenceMs ? { silenceMs } : {}) }
      yield* this.events({ method, path, body, ...more })
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
      async function* bytes(): AsyncGenerator<Buffer> {
        try {
          yield* message as AsyncIterable<Buffer>
        } catch (cause) {
          request.signal?.throwIfAborted()
          throw broken(url, cause)
        }
      }
      return { headers: message.headers, bytes: bytes() }
    },

    /**
     * Uploads a file to a signed URL of the server, without a token. Throws a Failure when the server refuses it.
     */
    async put(address: string, body: Readable, headers: Record<string, string>, signal?: AbortSignal): Promise<void> {
      let message: IncomingMessage
      try {
        message = await send({
          method: 'PUT',
          url: ownAddress(address),
          token: undefined,
          body,
          headers,
          signal,
          silenceMs: fileSilenceMs,
          certificate,
        })
      } catch (cause) {
        signal?.throwIfAborted()
        throw serverUnreachable(server, dataDir, cause)
      }
      const status = message.statusCode ?? 0
      const text = await readText(message, maxErrorBytes).catch(() => '')
      if (status < 200 || status > 299) throw serverRefusal(url, text, { status, headers: message.headers })
    },

    /** Sends a body that is not JSON, with the token, and returns the JSON body of the response. */
    async post<S extends z.ZodType>(
      path: string,
      body: Readable,
      headers: Record<string, string>,
      { answer, signal }: { answer: S; signal: AbortSignal },
    ): Promise<z.output<S>> {
      const options = { method: 'POST', url: url + path, token, headers, signal, silenceMs: fileSilenceMs, certificate }
      const message = await send({ ...options, body }).catch((cause: unknown) => {
        signal.throwIfAborted()
        throw serverUnreachable(server, dataDir, cause)
      })
      const status = message.statusCode ?? 0
      const text = await readText(message, maxErrorBytes).catch(() => '')
      if (status < 200 || status > 299) throw serverRefusal(url, text, { status, headers: message.headers })
      return answer.parse(JSON.parse(text))
    },

    /** Downloads the content at a path of the API, with the token. */
    content: (path: string, signal: AbortSignal): AsyncGenerator<Buffer, void, void> =>
      download(url + path, token, signal),

    /** Downloads a file from a signed URL of a result, without a token. */
    bytes: (address: string, signal: AbortSignal): AsyncGenerator<Buffer, void, void> =>
      download(ownAddress(address), undefined, signal),
  }

  async function* download(
    from: string,
    withToken: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer, void, void> {
    let message: IncomingMessage
    try {
      message = await send({
        method: 'GET',
        url: from,
        token: withToken,
        signal,
        silenceMs: fileSilenceMs,
        certificate,
      })
    } catch (cause) {
      signal.throwIfAborted()
      throw serverUnreachable(server, dataDir, cause)
    }
    const status = message.statusCode ?? 0
    if (status !== 200)
      throw serverRefusal(from.split('?')[0]!, await readText(message, maxErrorBytes).catch(() => ''), {
        status,
        headers: message.headers,
      })
    try {
      yield* message as AsyncIterable<Buffer>
    } catch (cause) {
      signal.throwIfAborted()
      throw broken(url, cause)
    }
  }
}
export type Client = ReturnType<typeof openClient>

/** Resolves with the data of a call of `api`. */
export async function dataOf<T>(call: Promise<{ data?: T }>): Promise<NonNullable<T>> {
  return (await call).data as NonNullable<T>
}

const broken = (url: string, cause: unknown): Failure =>
  refused('worker_error', `The connection to ${url} was lost during the response. Run the command again.`, { cause })
