import type { ServerResponse } from 'node:http'
import type { Failure } from '../../core/failure.ts'

/** In what an engine streams: the type that it says, and how a failure looks as the last frame. */
export interface StreamForm {
  contentType: string
  failure(failure: Failure): string
}

/** The form of OpenAI-style answers. */
export const eventStream: StreamForm = {
  contentType: 'text/event-stream; charset=utf-8',
  failure: failure => `data: ${JSON.stringify(bodyOf(failure))}\n\n`,
}

/** One answer on its way out. Either `json` once, or `write` any number of times and then `end`. */
export interface Reply {
  json(body: unknown): void
  /** Sends a part of a stream; resolves when there is room for more. Headers go out with the first. */
  write(frames: string): void | Promise<void>
  end(frames: string): void
  /** Begins an answer that is no text, of so many bytes. */
  binary(contentType: string, length: number): BinaryReply
  /** Sends what waits for company, for who ends the response by other means. */
  flush(): void
  /** Raised with a Failure when the caller has gone or the engine stops. */
  readonly signal: AbortSignal
}

export interface BinaryReply {
  /** Sends a part; resolves when there is room for more. */
  write(bytes: Uint8Array): void | Promise<void>
  end(): void
}

/** The reply over an HTTP response. */
export function openReply(
  response: ServerResponse,
  signal: AbortSignal,
  { contentType }: StreamForm = eventStream,
): Reply {
  const begin = () => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-cache' })
  }
  let held = ''
  let sentAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let full: Promise<void> | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    sentAt = performance.now()
    const frames = held
    held = ''
    if (frames === '' || response.destroyed || response.writableEnded) return
    if (response.write(frames)) return
    full = drained(response, signal).finally(() => {
      full = undefined
    })
    full.catch(() => {})
  }

  return {
    signal,
    json: body => send(response, 200, body),
    write(frames) {
      begin()
      held += frames
      if (held.length >= maxHeld || performance.now() - sentAt >= togetherMs) flush()
      else timer ??= setTimeout(flush, togetherMs)
      return full
    },
    end(frames) {
      begin()
      clearTimeout(timer)
      response.end(held + frames)
      held = ''
    },
    binary(type, length) {
      response.setHeader('content-type', type).setHeader('content-length', length).writeHead(200)
      return {
        write: bytes => (response.write(bytes) ? undefined : drained(response, signal)),
        end: () => void response.end(),
      }
    },
    flush,
  }
}

/** Frames that come faster after each other travel together: a write costs as much as a token of a small model. */
const togetherMs = 2
/** What waits for company is not more than this, in characters: a reader who does not read must be noticed. */
const maxHeld = 1 << 14

function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      response.off('drain', go)
      reject(signal.reason as Error)
    }
    const go = () => {
      signal.removeEventListener('abort', leave)
      resolve()
    }
    if (signal.aborted) return leave()
    response.once('drain', go)
    signal.addEventListener('abort', leave, { once: true })
  })
}

/** A whole answer in JSON. */
export function send(response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
}

/** A Failure: as a status where nothing was sent yet, or else as the last frame of the stream. */
export function sendFailure(response: ServerResponse, failure: Failure, form: StreamForm = eventStream): void {
  if (response.destroyed || response.writableEnded) return
  if (response.headersSent) {
    // Of bytes that are no text nothing can be said within them: they end too early.
    if (response.hasHeader('content-length')) return void response.destroy()
    response.end(form.failure(failure))
    return
  }
  const { retryAfterMs } = failure
  if (retryAfterMs !== undefined) response.setHeader('retry-after', Math.ceil(retryAfterMs / 1000))
  send(response, failure.status, bodyOf(failure))
}

const bodyOf = ({ code, message, type, param }: Failure) => ({ error: { code, message, type, param: param ?? null } })
