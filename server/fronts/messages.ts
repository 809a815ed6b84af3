import type { Limits } from '../../core/config.ts'
import type { LogFields, LogLevel } from '../../core/log.ts'
import type { KeyPair } from '../http/connection/certificate.ts'

/** What a front needs to begin. */
export interface FrontStart {
  /** Where it listens, together with the other fronts. */
  host: string
  port: number
  /** How many connections the kernel queues until they are accepted. */
  backlog: number
  /** Serves HTTPS with this key pair; HTTP without. */
  keyPair: KeyPair | undefined
  limits: Pick<Limits, 'headers_timeout' | 'request_timeout' | 'keep_alive_timeout'>
  /** How many connections it accepts at most. */
  connections: number
  /** The Unix socket on which control takes requests, and the secret that proves them. */
  socketPath: string
  secret: string
}

/** What control tells a front. */
export type ToFront =
  | ({ kind: 'start' } & FrontStart)
  /** New connections use this key pair from now on. */
  | { kind: 'keyPair'; keyPair: KeyPair }
  /** It closes its connections and ends. */
  | { kind: 'close' }

/** What a front tells control. */
export type FromFront =
  | { kind: 'listening' }
  /** It cannot listen, with the system's error. */
  | { kind: 'refused'; code: string | undefined; message: string }
  | { kind: 'log'; level: LogLevel; message: string; fields: LogFields; cause: string | undefined }
