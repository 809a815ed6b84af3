import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { z } from 'zod'
import { remote } from '../core/config.ts'
import { Failure } from '../core/failure.ts'
import { CommandFailure, exitCodes, refused } from './exit-codes.ts'
import { readText, send } from './http.ts'
import { refusal } from './refusal.ts'
import { runningServer } from './server-file.ts'
import { openSseParser, type SseEvent } from './sse.ts'

export interface Request<S extends z.ZodType> {
  method: 'GET' | 'POST' | 'DELETE'
  /** Begins with a slash; what is variable in it is already encoded. */
  path: string
  body?: unknown
  /** The least that the answer must be; further members are kept out. */
  answer: S
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** How a stream is read. */
export interface Reading {
  /** A connection on which nothing comes for this long is dead. Milliseconds; for ever when left out. */
  silenceMs?: number
}

/** What a server answered that this program cannot read: the sentence is in the Failure, this is its cause. */
export class Unintelligible extends Error {}

/** Bytes. An answer without streaming is bounded by what engines may answer; a refusal is short. */
const longestAnswer = 64 << 20
const longestRefusal = 1 << 20

/**
 * Speaks to one server: the one that INFER_URL and INFER_TOKEN name, else the one that runs on the data directory.
 * What the server refuses is thrown as a Failure with its own sentence.
 */
export function openClient(dataDir: string) {
  const { url, token, isRemote } = findServer(dataDir)

  async function open(
    method: string,
    path: string,
    body: unknown,
    signal?: AbortSignal,
    headers?: Request<z.ZodType>['headers'],
  ) {
    let message: IncomingMessage
    try {
      const text = body === undefined ? undefined : JSON.stringify(body)
      message = await send({ method, url: url + path, token, body: text, headers, signal })
    } catch (cause) {
      signal?.throwIfAborted()
      throw unreachable(url, isRemote, dataDir, cause)
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
      const { method, path, body, answer, headers, signal } = request
      const message = await open(method, path, body, signal, headers)
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
          { cause: new Unintelligible(String(cause), { cause }) },
        )
      }
    },

    /**
     * Asks for a stream of events, with POST when there is a body; they come as the server sends them. Leaving the loop
     * ends the request.
     */
    async *stream(
      path: string,
      body: unknown,
      signal?: AbortSignal,
      { silenceMs }: Reading = {},
    ): AsyncGenerator<SseEvent, void, void> {
      const message = await open(body === undefined ? 'GET' : 'POST', path, body, signal)
      const parser = openSseParser()
      if (silenceMs !== undefined)
        message.setTimeout(silenceMs, () => message.destroy(new Error(`nothing came for ${silenceMs} ms`)))
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
        message = await send({ method: 'PUT', url: ownAddress(address), token: undefined, body, headers, signal })
      } catch (cause) {
        signal?.throwIfAborted()
        throw unreachable(url, isRemote, dataDir, cause)
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
        message = await send({ method: 'GET', url: from, token: undefined, signal })
      } catch (cause) {
        signal.throwIfAborted()
        throw unreachable(url, isRemote, dataDir, cause)
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

function findServer(dataDir: string): { url: string; token: string; isRemote: boolean } {
  const far = remote()
  if (far) {
    if (!URL.canParse(far.url) || !/^https?:/.test(far.url))
      throw new CommandFailure(
        exitCodes.usage,
        'invalid_value',
        `INFER_URL is '${far.url}', which is no address. Write it as http://host:8787.`,
      )
    if (!far.token)
      throw new CommandFailure(
        exitCodes.usage,
        'missing_api_key',
        'INFER_URL is set, but INFER_TOKEN is not. Set it to a token of that server.',
      )
    // People paste the base address of an OpenAI client.
    return { url: far.url.replace(/(\/std)?\/v1$/, ''), token: far.token, isRemote: true }
  }
  const server = runningServer(dataDir)
  if (!server) throw notRunning(dataDir)
  return { url: connectable(server.url), token: rootToken(dataDir), isRemote: false }
}

const broken = (url: string, cause: unknown): Failure =>
  refused('worker_error', `The connection to ${url} broke in the middle of the answer. Ask again.`, { cause })

function rootToken(dataDir: string): string {
  const path = join(dataDir, 'root-token')
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (cause) {
    throw refused(
      'missing_api_key',
      `The root token ${path} cannot be read. Run this as the user of the server, or set INFER_URL and INFER_TOKEN.`,
      { cause },
    )
  }
}

/** A server that listens on every address is reached over loopback. */
const connectable = (url: string): string =>
  url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=[:/]|$)/, '//127.0.0.1').replace(/\/+$/, '')

const notRunning = (dataDir: string): Failure =>
  refused('no_capacity', `No server is running on ${dataDir}. Start one with: infer serve`)

function unreachable(url: string, isRemote: boolean, dataDir: string, thrown: unknown): Failure {
  const { code, message } = thrown as NodeJS.ErrnoException
  if (!isRemote && code === 'ECONNREFUSED') return notRunning(dataDir)
  return refused(
    'no_capacity',
    `The server ${url} cannot be reached (${code ?? message}). ${isRemote ? 'Check INFER_URL and whether it runs.' : 'Look into its log.'}`,
    { cause: thrown },
  )
}
