import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Failure } from '../../core/failure.ts'
import { ignoredHeader, ignoredText } from '../../core/ignored.ts'

/** The format of an engine's streams: the content type, and the frame that reports a failure. */
export interface StreamForm {
  contentType: string
  failure(failure: Failure): string
}

export const eventStream: StreamForm = {
  contentType: 'text/event-stream; charset=utf-8',
  failure: failure => `data: ${JSON.stringify(bodyOf(failure))}\n\n`,
}

/** One response. Call `json` once, or `write` any number of times and then `end`, or `binary`. */
export function openEngineReply(response: ServerResponse, signal: AbortSignal, form: StreamForm = eventStream) {
  const nameIgnored = (): void => {
    const ignored = ignoredText(reply.ignored)
    if (ignored !== '') response.setHeader(ignoredHeader, ignored)
  }
  const begin = (): void => {
    if (response.headersSent) return
    nameIgnored()
    response.writeHead(200, { 'content-type': reply.form.contentType, 'cache-control': 'no-cache' })
  }
  let buffered = ''
  let sentAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let full: Promise<void> | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    sentAt = performance.now()
    const frames = buffered
    buffered = ''
    if (frames === '' || response.destroyed || response.writableEnded) return
    if (response.write(frames)) return
    full = drained(response, signal).finally(() => (full = undefined))
    full.catch(() => {})
  }

  const reply = {
    /** Aborted with a Failure when the client disconnects or the engine stops. */
    signal,
    /** The format of this stream, if it differs from that of the engine's other streams. Set it before `write`. */
    form,
    /** Paths of what was left out of the request, for the header of the answer. Set it before `write` or `json`. */
    ignored: [] as readonly string[],
    json(body: unknown): void {
      nameIgnored()
      sendReply(response, 200, body)
    },
    /** Sends frames of a stream; resolves when more can be written. The first call sends the headers. */
    write(frames: string): void | Promise<void> {
      begin()
      buffered += frames
      if (buffered.length >= maxBuffered || performance.now() - sentAt >= mergeMs) flush()
      else timer ??= setTimeout(flush, mergeMs)
      return full
    },
    /** Sends bytes after the frames so far; resolves when more can be written. */
    async bytes(piece: Uint8Array): Promise<void> {
      begin()
      flush()
      // A frame of a later failure would be taken for bytes: the answer then ends early.
      reply.form = { ...reply.form, failure: () => '' }
      if (!response.write(piece)) await drained(response, signal)
    },
    end(frames: string): void {
      begin()
      clearTimeout(timer)
      response.end(buffered + frames)
      buffered = ''
    },
    /** Starts a binary response of `length` bytes. */
    binary(type: string, length: number) {
      response.setHeader('content-type', type).setHeader('content-length', length).writeHead(200)
      return {
        /** Sends bytes; resolves when more can be written. */
        write: (bytes: Uint8Array) => (response.write(bytes) ? undefined : drained(response, signal)),
        end: (): void => void response.end(),
      }
    },
    /** Sends buffered frames; needed before the response is ended by other means. */
    flush,
  }
  return reply
}

export type EngineReply = ReturnType<typeof openEngineReply>

/** Frames that follow within this time are merged into one write, which costs as much as a token of a small model. */
const mergeMs = 2
/** Maximum characters buffered for merging, so that a slow client is noticed. */
const maxBuffered = 1 << 14

/** Resolves when more can be written. Rejects with the reason of the signal. */
async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  try {
    await once(response, 'drain', { signal })
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

export function sendReply(response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
}

/** Sends a Failure as an HTTP error, or as the last frame if the stream has started. */
export function sendFailure(response: ServerResponse, failure: Failure, form: StreamForm = eventStream): void {
  if (response.destroyed || response.writableEnded) return
  if (response.headersSent) {
    // A binary response has no frame for errors: closing it early is the only signal.
    if (response.hasHeader('content-length')) return void response.destroy()
    response.end(form.failure(failure))
    return
  }
  const { retryAfterMs } = failure
  if (retryAfterMs !== undefined) response.setHeader('retry-after', Math.ceil(retryAfterMs / 1000))
  sendReply(response, failure.status, bodyOf(failure))
}

const bodyOf = ({ code, message, type, param }: Failure) => ({ error: { code, message, type, param: param ?? null } })
