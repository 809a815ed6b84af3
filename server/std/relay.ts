import type { ServerResponse } from 'node:http'
import { Failure } from '../../core/failure.ts'
import type { EngineListener, Exchange } from '../../core/fleet.ts'
import type { Usage } from '../../core/store/store.ts'
import { usageOf } from '../../core/tasks/answer.ts'
import type { ChatWant } from '../../core/tasks/chat-completion.ts'
import type { Call } from '../call.ts'
import { errorFrame } from '../errors.ts'
import type { Meter } from '../throughput.ts'
import { completeUntil, type FrameFacts, factsOf } from './frames.ts'
import type { Streams, WatchedStream } from './streams.ts'

/** How a stream ended. `retry` means that nothing reached the caller, so another engine may be tried. */
export type StreamEnd =
  | { how: 'completed'; usage: Usage }
  | { how: 'failed'; failure: Failure; usage: Usage }
  | { how: 'cancelled'; usage: Usage }
  | { how: 'retry'; failure: Failure }

const done = Buffer.from('data: [DONE]\n\n')
const ping = ': ping\n\n'
/** Engines are always asked for usage and say this in every chunk; only a caller who asked too is to see it. */
const noUsage = ',"usage":null'
/** A delta with at least one character of content, of reasoning or of a tool call's arguments. */
const carriesText = /"(?:content|reasoning_content|reasoning|arguments)"\s*:\s*"[^"]/
/** Inside a text of the answer the quotes are escaped, so this finds the frame's own member only. */
const modelMember = /"model"\s*:\s*"((?:[^"\\]|\\.){0,256})"/

interface RelayOptions {
  call: Call
  want: ChatWant
  maxFrameBytes: number
  streams: Streams
  meter: Meter
  ended(end: StreamEnd): void
}

/**
 * Carries a chat stream from an engine to a client. Frames go through as the bytes they are; only the usage frame
 * that the caller did not ask for is taken out, errors are put into our envelope, and a missing `[DONE]` is added.
 * Holds at most one frame and what the socket has not taken yet: a slow reader stops the reading from the engine,
 * a stuck one is cut at the write deadline, a departed one ends the engine's request at once.
 */
export class StreamRelay implements EngineListener, WatchedStream {
  blockedSince: number | undefined
  wroteAt = performance.now()
  readonly #call: Call
  readonly #res: ServerResponse
  readonly #options: RelayOptions
  #exchange: Exchange | undefined
  #partial: Buffer | undefined
  #over = false
  #begun = false
  #finishSeen = false
  #contentFrames = 0
  #usage: Usage | undefined
  #first: string | undefined
  /** The model member of the engine's frames where it is not the public name, to be replaced by that. */
  #foreignName: string | undefined
  readonly #leave = () => {
    const reason = this.#call.gone.reason as Failure
    if (this.#over) return
    if (reason.code === 'cancelled') {
      if (this.#begun && !this.#call.left) this.#res.end(errorFrame(reason, this.#call.id))
      this.#abandon()
    } else {
      this.#exchange?.abort()
      this.failed(reason)
    }
  }
  readonly #drain = () => {
    this.blockedSince = undefined
    this.#exchange?.resume()
  }

  constructor(options: RelayOptions) {
    this.#options = options
    this.#call = options.call
    this.#res = options.call.res
    this.#call.gone.addEventListener('abort', this.#leave)
  }

  /** The engine's request, once it is on its way. */
  attach(exchange: Exchange): void {
    if (this.#over) exchange.abort()
    else this.#exchange = exchange
    if (this.#call.gone.aborted) this.#leave()
  }

  accepted(contentType: string): void {
    if (this.#over) return
    if (!contentType.startsWith('text/event-stream')) {
      this.#fault(`'${contentType.slice(0, 60)}' where a stream was asked for`)
      return
    }
    this.#begun = true
    this.#call.head(200, 'text/event-stream; charset=utf-8', ['cache-control', 'no-cache', 'x-accel-buffering', 'no'])
    this.#options.streams.add(this)
    this.#res.on('drain', this.#drain)
  }

  chunk(bytes: Buffer): void {
    if (this.#over) return
    const all = this.#partial ? Buffer.concat([this.#partial, bytes]) : bytes
    const text = all.toString('latin1')
    const end = completeUntil(text)
    this.#partial = end === all.length ? undefined : all.subarray(end)
    if (this.#partial && this.#partial.length > this.#options.maxFrameBytes) {
      this.#fault('an event larger than any answer')
      return
    }
    if (end > 0) this.#forward(all, text, end)
  }

  finished(): void {
    if (this.#over) return
    if (!this.#finishSeen) {
      this.#fault('a stream that broke off')
      return
    }
    if (this.#options.want.includeUsage && !this.#usage) this.#write(Buffer.from(this.#usageFrame()))
    this.#res.end(done)
    this.#end({ how: 'completed', usage: this.#delivered() })
  }

  failed(failure: Failure): void {
    if (this.#over) return
    if (!this.#begun && failure.retryable) {
      this.#end({ how: 'retry', failure })
      return
    }
    if (this.#begun) this.#res.end(errorFrame(failure, this.#call.id))
    this.#end({ how: 'failed', failure, usage: this.#delivered() })
  }

  ping(): void {
    this.#write(ping)
  }

  cut(): void {
    this.#abandon()
    this.#options.streams.remove(this)
    this.#res.destroy()
  }

  interrupt(): void {
    this.#exchange?.abort()
    this.failed(new Failure('shutting_down', 'The server is stopping. Send the request again in a moment.'))
  }

  /** Looks at the complete frames and passes them on, all at once where nothing has to come out. */
  #forward(all: Buffer, text: string, end: number): void {
    let from = 0
    let at = 0
    while (at < end) {
      const blank = text.indexOf('\n\n', at)
      const crlf = text.indexOf('\r\n\r\n', at)
      const windows = crlf >= 0 && (blank < 0 || crlf < blank)
      const stop = windows ? crlf : blank
      const next = stop + (windows ? 4 : 2)
      const facts = factsOf(text.slice(at, stop))
      if (!this.#keep(facts, text, at, stop)) {
        if (at > from) this.#writePart(all, text, from, at)
        from = next
        if (facts.kind === 'error') return this.#engineError(facts.data)
      }
      at = next
    }
    if (end > from) this.#writePart(all, text, from, end)
  }

  /** Whether the frame goes on to the client; takes from it what is ours to know. */
  #keep(facts: FrameFacts, text: string, at: number, stop: number): boolean {
    if (facts.kind === 'done') return false
    if (facts.kind === 'comment') return true
    if (facts.kind === 'error') return false
    if (facts.finished) this.#finishSeen = true
    if (facts.data !== undefined) this.#usage = readUsage(facts.data) ?? this.#usage
    if (facts.kind === 'usage') return this.#options.want.includeUsage
    if (carriesText.test(text.slice(at, stop))) {
      this.#contentFrames++
      this.#options.meter.output++
    }
    if (this.#first === undefined) {
      this.#first = text.slice(at, stop)
      const named = modelMember.exec(this.#first)
      if (named && named[1] !== this.#options.want.modelId) this.#foreignName = named[0]
    }
    return true
  }

  #writePart(all: Buffer, text: string, from: number, to: number): void {
    const foreign = this.#foreignName
    const bareUsage = !this.#options.want.includeUsage && text.includes(noUsage)
    if (foreign === undefined && !bareUsage) {
      this.#write(from === 0 && to === all.length ? all : all.subarray(from, to))
      return
    }
    let part = text.slice(from, to)
    if (foreign !== undefined) part = part.replaceAll(foreign, `"model":"${this.#options.want.modelId}"`)
    if (bareUsage) part = part.replaceAll(noUsage, '')
    this.#write(Buffer.from(part, 'latin1'))
  }

  #write(bytes: Buffer | string): void {
    this.wroteAt = performance.now()
    if (this.#res.write(bytes) || this.blockedSince !== undefined) return
    this.blockedSince = this.wroteAt
    this.#exchange?.pause()
  }

  /** The usage chunk for engines that do not send one: counted by delivered chunks. */
  #usageFrame(): string {
    const usage = this.#delivered()
    const head = headOf(this.#first)
    const counts = {
      prompt_tokens: usage.inputTokens,
      completion_tokens: usage.outputTokens,
      total_tokens: usage.inputTokens + usage.outputTokens,
    }
    return `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', model: this.#options.want.modelId, choices: [], usage: counts })}\n\n`
  }

  /** What the engine said it used, or one token for each frame that carried content. */
  #delivered(): Usage {
    return this.#usage ?? { inputTokens: 0, outputTokens: this.#contentFrames }
  }

  #engineError(data: string | undefined): void {
    this.#exchange?.abort()
    this.failed(engineError(data))
  }

  #fault(what: string): void {
    this.#exchange?.abort()
    this.failed(new Failure('worker_error', `The engine answered ${what}. Trying again may help.`))
  }

  #abandon(): void {
    if (this.#over) return
    this.#exchange?.abort()
    this.#end({ how: 'cancelled', usage: this.#delivered() })
  }

  #end(end: StreamEnd): void {
    this.#over = true
    this.#partial = undefined
    this.#call.gone.removeEventListener('abort', this.#leave)
    this.#res.off('drain', this.#drain)
    if (end.how !== 'retry') this.#count(end.usage)
    if (this.#begun) this.#seeOff()
    this.#options.ended(end)
  }

  /** What the engine says beyond the frames that were counted as they passed. */
  #count({ inputTokens, outputTokens }: Usage): void {
    const { meter } = this.#options
    meter.input += inputTokens
    meter.output += Math.max(0, outputTokens - this.#contentFrames)
  }

  /** The watch goes on until the socket has taken the rest, or a reader that stopped reading would stay for ever. */
  #seeOff(): void {
    this.blockedSince = performance.now()
    const { streams } = this.#options
    // A response that is gone tells nobody any more that it closed.
    if (this.#call.left) streams.remove(this)
    else this.#res.once('close', () => streams.remove(this))
  }
}

function readUsage(data: string): Usage | undefined {
  try {
    return usageOf((JSON.parse(Buffer.from(data, 'latin1').toString('utf8')) as { usage?: unknown }).usage)
  } catch {
    return undefined
  }
}

function headOf(frame: string | undefined): { id: string; created: number } {
  const id = /"id"\s*:\s*"([^"\\]{1,128})"/.exec(frame ?? '')?.[1] ?? 'chatcmpl-0'
  const created = Number(/"created"\s*:\s*(\d{1,12})/.exec(frame ?? '')?.[1] ?? Math.floor(Date.now() / 1000))
  return { id, created }
}

/** What an engine says in mid-stream, as ours. Its words are kept when there are any; its codes are its own. */
function engineError(data: string | undefined): Failure {
  let message: unknown
  try {
    const body = JSON.parse(Buffer.from(data ?? '', 'latin1').toString('utf8')) as {
      error?: { message?: unknown } | string
      message?: unknown
    }
    message = typeof body.error === 'string' ? body.error : (body.error?.message ?? body.message)
  } catch {
    message = undefined
  }
  const words = typeof message === 'string' ? message.slice(0, 500) : 'no reason given'
  return new Failure('worker_error', `The engine gave up in the middle of its answer: ${words}`)
}
