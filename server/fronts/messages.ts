import type { Caller } from '../../core/accounts/accounts.ts'
import type { CreditMessage } from '../../core/admission/credit-messages.ts'
import type { Limits } from '../../core/config.ts'
import type { LogFields, LogLevel } from '../../core/log.ts'
import type { Config } from '../../core/models/config.ts'
import type { Model } from '../../core/models/model.ts'
import type { GrantedEngine } from '../../core/models/slot-grants.ts'
import type { FinishedJob, JobRecord } from '../../core/store/store.ts'
import type { KeyPair } from '../http/connection/certificate.ts'
import type { ForwardTarget } from './forward.ts'

/** What a front needs to begin; it passes requests on to control. */
export interface FrontStart extends ForwardTarget {
  /** Where it listens, together with the other fronts. */
  host: string
  port: number
  /** File descriptors of sockets that listen there already; empty: it opens one. */
  descriptors: readonly number[]
  /** How many connections the kernel queues until they are accepted. */
  backlog: number
  /** Serves HTTPS with this key pair; HTTP without. */
  keyPair: KeyPair | undefined
  limits: Pick<Limits, 'headers_timeout' | 'request_timeout' | 'keep_alive_timeout'>
  /** How many connections it accepts at most. */
  connections: number
}

/** What control tells a front. */
export type ToFront =
  | ({ kind: 'start' } & FrontStart)
  /** New connections use this key pair from now on. */
  | { kind: 'keyPair'; keyPair: KeyPair }
  /** It answers requests itself from now on, where it can. */
  | { kind: 'serve'; config: Config; models: readonly Model[] }
  | { kind: 'models'; models: readonly Model[] }
  /** The caller of a secret, and until when that holds, epoch milliseconds. Null: control decides about each request. */
  | { kind: 'caller'; secret: string; caller: Caller | null; until: number }
  /** It forgets all callers, and answers `done` with this number. */
  | { kind: 'forget'; number: number }
  /** It tells of all its calls, and answers `done` with this number. */
  | { kind: 'report'; number: number }
  | { kind: 'grant'; engine: GrantedEngine; slots: number }
  | { kind: 'recall'; engineId: string }
  /** What it may use of the limits of organizations and tokens. */
  | { kind: 'credits'; credits: CreditMessage }
  | { kind: 'ended'; engineId: string }
  /** The records up to this one, counted since the start of the front, are stored. */
  | { kind: 'stored'; records: number }
  /** These calls end with this reason. */
  | { kind: 'cancel'; ids: readonly string[]; message: string }
  /** It answers no further request itself, and answers `drained` once its own have ended, after this time at the latest. */
  | { kind: 'drain'; deadlineMs: number }
  /**
   * Another server takes its place: it answers nothing more itself, tells what it has done, and answers `done` with this number.
   * It keeps of slots and limits only what its running calls use.
   */
  | { kind: 'yield'; number: number }
  /**
   * That server serves, on the same sockets: it accepts no more connections, passes requests on to that server, and answers
   * `left` once all its connections are closed, after this time at the latest.
   */
  | ({ kind: 'leave'; deadlineMs: number } & ForwardTarget)
  /** It closes its connections and ends. */
  | { kind: 'close' }

/** What a front has done since its last message. Absent members are empty. */
export interface FrontWork {
  records?: FinishedJob[]
  /** The accounts of the token of each record that costs something (see `tokenIdsOf`), in their order. */
  tokenIds?: (readonly string[])[]
  /** What it has used of limits. The records of its calls are in this message or an earlier one. */
  credits?: CreditMessage
  /** Calls that have run for a while, and that `records` or `passedOn` will have. */
  began?: JobRecord[]
  /** Of these calls those that control answers instead: `records` will not have them. */
  passedOn?: string[]
  /** Path, status and milliseconds of each answered request, flat. */
  answered?: (string | number)[]
  /** Kind, model and milliseconds of each duration, flat. */
  timings?: (string | number)[]
  /** Model, input and output tokens, flat. */
  tokens?: (string | number)[]
  /** Secrets whose callers it wants to know. */
  secrets?: string[]
  /** Models of which it had no free slot. */
  lacking?: string[]
  /** Engine, slots that go back, and the mean milliseconds of the requests that succeeded, flat. */
  returned?: (string | number | null)[]
}

/** What a front tells control. */
export type FromFront =
  /** Its program is loaded. */
  | { kind: 'loaded' }
  /** It accepts connections. The socket comes along if it has opened one. */
  | { kind: 'listening' }
  /** It cannot listen, with the system's error. */
  | { kind: 'refused'; code: string | undefined; message: string }
  | { kind: 'log'; level: LogLevel; message: string; fields: LogFields; cause: string | undefined }
  | ({ kind: 'work' } & FrontWork)
  | { kind: 'done'; number: number }
  /** An engine wants a pause (milliseconds), or sends nothing on any request. */
  | { kind: 'fault'; engineId: string; fault: { pauseMs: number } | 'stuck' }
  | { kind: 'drained' }
  | { kind: 'left' }
