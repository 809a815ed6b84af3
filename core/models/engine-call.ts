import type { Readable } from 'node:stream'
import type { Failure } from '../failure.ts'

export interface EngineCall {
  /** POST when absent; others have no body. */
  method?: 'POST' | 'GET' | 'DELETE'
  path: string
  /** JSON, unless `contentType` is set. */
  body: string | Uint8Array | StreamedBody
  /** Members, as JSON text, that are sent at the start of the object in `body`, so that a large one need not be copied. */
  members?: string | undefined
  /** Whether nothing of the request may be stored. Where absent, the body is searched for it. */
  unstored?: boolean | undefined
  /** Whether it wants several answers of one prompt. Where absent, the body is searched for it. */
  several?: boolean | undefined
  contentType?: string
  /** Milliseconds that the engine may send nothing in addition to `no_progress` of the model. */
  patienceMs?: number
  /** Where the engine reports the `status` of this work. If the request fails, the slot is free when the work has ended. */
  workPath?: string
  /** Whether the body of an error answer is an answer all the same. It is then passed on like one. */
  isAnswer?(body: string): boolean
  /** False: the caller collects the answer, of at most `maxBytes`. True: the answer is relayed without a limit. */
  stream: boolean
  maxBytes: number
}

/** A body that is too large for memory. It is read while it is sent, and opened again if it must be sent again. */
export interface StreamedBody {
  /** Length of the body. */
  bytes: number
  /** If the stream fails with a Failure, that Failure is reported to the caller and does not count as an engine error. */
  open(): Readable
}

/**
 * Callbacks of one request, in this order: `accepted`, any number of `chunk`, then `finished`; or at any point `failed`,
 * after which nothing follows. A chunk belongs to the listener, which may keep it without copying.
 */
export interface EngineListener {
  /** `ignored`: what the engine left out of the request, as in `ignored.ts`; absent if nothing. */
  accepted(contentType: string, ignored?: string): void
  chunk(bytes: Buffer): void
  finished(): void
  /** `worker_error` if the engine failed, `timeout` if it hangs (both retryable), else the normalised refusal of the engine. */
  failed(failure: Failure): void
}

/** A running request to an engine. */
export interface EngineExchange {
  /** Stops reading from the engine until `resume`, for a client that reads too slowly. */
  pause(): void
  resume(): void
  /** Ends the request at once, because the client disconnected. Does not call `failed`. */
  abort(): void
}
