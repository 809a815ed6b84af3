import type { Failure } from '../failure.ts'

/** Callbacks of a WebSocket to an engine: any number of `message`, then `failed` unless it was closed from here. */
export interface SocketListener {
  opened(): void
  message(data: string | Buffer): void
  /** `timeout` if it was open and nothing came for `no_progress` of the model, `worker_error` if it broke. */
  failed(failure: Failure): void
}

/** An open WebSocket to an engine. */
export interface EngineSocket {
  close(): void
}
