import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { z } from 'zod'
import { Failure } from '../core/failure.ts'
import { refused } from './exit-codes.ts'
import { findServer, unreachable } from './find-server.ts'
import { readText, send } from './http.ts'
import { refusal } from './refusal.ts'
import { openSseParser, type SseEvent } from './sse.ts'

export interface Request<S extends z.ZodType> {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Begins with a slash; what is variable in it is already encoded. */
  path: string
  body?: unknown
  /** The least that the answer must be; further members are kept out. */
  answer: S
  headers?: Record<string, string>
  signal?: AbortSignal
  /** A connection on which nothing moves for this long is dead. Milliseconds; for ever when left out. */
  silenceMs?: number
}
type Question = Omit<Request<z.ZodType>, 'answer'>

/** What a server answered that this program cannot read: the sentence is in the Failure, this is its cause. */
export class UnreadableAnswer extends Error {}

/** Bytes. An answer without streaming is bounded by what engines may answer; a refusal is short. */
const longestAnswer = 64 << 20
const longestRefusal = 1 << 20
/** A file that does not move for this long does not come any more. Milliseconds. */
const fileSilenceMs = 60_000

/**
 * Speaks to one server: the one that INFER_URL and INFER_TOKEN name, else the one that runs on the data directory.
 * What the server refuses is thrown as a Failure with its own sentence.
 */
export function openClient(dataDir: string) {
  const server = findServer(dataDir)
  const { url, token, isRemote, certificate } = server

  async function open({ path, body, signal, ...how }: Question) {
    let message: IncomingMessage
    try {
      const text = body === undefined ? undefined : JSON.stringify(body)
      message = await send({ ...how, url: url + path, token, body: text, signal, certificate })
    } catch (cause) {
      signal?.throwIfAborted()
      throw unreachable(server, dataDir, cause)
    }
    const status = message.statusCode ?? 0
    if (status >= 200 && status < 300) return message
    throw refusal(url, await readText(message, longestRefusal).catch(() => ''), { status, headers: message.headers })
  }

  /** Where a signed address of the server is asked: the one on this machine of itself, whatever its public address is. */
  const ownAddress = (address: string): string => {
    const { href, pathname, search } = new URL(address, url)
    return isRemote ? href : url + pathname + search
  }

  return {
    url,
    isRemote,

    /** Asks for JSON. */
    async ask<S extends z.ZodType>(request: Request<S>): Promise<z.output<S>> {
      return (await this.hear(request)).answer
    },

    /** The same, with the head of the answer. */
    async hear<S extends z.ZodType>(
      request: Request<S>,
    ): Promise<{ answer: z.output<S>; headers: IncomingHttpHeaders }> {
      const { answer, ...question } = request
      const { path, signal } = question
      const message = await open(question)
      let text: string
      try {
        text = await readText(message, longestAnswer)
      } catch (cause) {
        signal?.throwIfAborted()
        throw broken(url, cause)
      }
      try {
        return { answer: answer.parse(JSON.parse(text)), headers: message.headers }
      } catch (cause) {
        throw refused(
          'worker_error',
          `${url}${path} answered with something that infer does not know. Is it an infer server of another version?`,
          { cause: new UnreadableAnswer(String(cause), { cause }) },
        )
      }
    },

    /**
     * Asks for a stream of events, with POST when there is a body; they come as the server sends them. CallerSignal the loop
     * ends the request.
     */
    async *stream(
      path: string,
      body: unknown,
      signal?: AbortSignal,
      silenceMs?: number,
    ): AsyncGenerator<SseEvent, void, void> {
      const method = body === undefined ? 'GET' : 'POST'
      const message = await open({
        method,
        path,
        body,
        ...(signal ? { signal } : {}),
        ...(silenceMs ? { silenceMs } : {}),
      })
      const parser = openSseParser()
      try {
        for await (const bytes of message as AsyncIterable<Buffer>) yield* parser.feed(bytes)
      } catch (cause) {
        signal?.throwIfAborted()
        if (cause instanceof Failure) throw cause
        throw broken(url, cause)
      }
    },

    /**
     * Sends a file to an address that the server has given out for it: signed, so no token goes along. Throws what the
     * server refuses.
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
        throw unreachable(server, dataDir, cause)
      }
      const status = message.statusCode ?? 0
      const text = await readText(message, longestRefusal).catch(() => '')
      if (status < 200 || status > 299) throw refusal(url, text, { status, headers: message.headers })
    },

    /**
     * The bytes of a file whose address a result names: signed, so no token goes along.
     */
    async *bytes(address: string, signal: AbortSignal): AsyncGenerator<Buffer, void, void> {
      const from = ownAddress(address)
      let message: IncomingMessage
      try {
        message = await send({
          method: 'GET',
          url: from,
          token: undefined,
          signal,
          silenceMs: fileSilenceMs,
          certificate,
        })
      } catch (cause) {
        signal.throwIfAborted()
        throw unreachable(server, dataDir, cause)
      }
      const status = message.statusCode ?? 0
      if (status !== 200)
        throw refusal(from.split('?')[0]!, await readText(message, longestRefusal).catch(() => ''), {
          status,
          headers: message.headers,
        })
      try {
        yield* message as AsyncIterable<Buffer>
      } catch (cause) {
        signal.throwIfAborted()
        throw broken(url, cause)
      }
    },
  }
}
export type Client = ReturnType<typeof openClient>

const broken = (url: string, cause: unknown): Failure =>
  refused('worker_error', `The connection to ${url} broke in the middle of the answer. Ask again.`, { cause })
