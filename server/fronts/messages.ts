import type { Caller } from '../../core/accounts/accounts.ts'
import type { CreditMessage } from '../../core/admission/credit-messages.ts'
import type { Settlement } from '../../core/admission/spend.ts'
import type { Limits } from '../../core/config.ts'
import type { RunningCall } from '../../core/jobs/call.ts'
import type { WaitReason } from '../../core/jobs/front-calls.ts'
import type { SlotRequest } from '../../core/jobs/slot-requests.ts'
import type { LogFields, LogLevel } from '../../core/log.ts'
import type { Config } from '../../core/models/config.ts'
import type { Model } from '../../core/models/model.ts'
import type { EngineFault, GrantedEngine } from '../../core/models/slot-grants.ts'
import type { CallsText } from '../../core/store/ledger-rows.ts'
import type { SentFailure } from '../../core/store/sqlite/sent-failure.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { KeyPair } from '../http/connection/certificate.ts'
import type { Timing } from '../metrics/timings.ts'
import type { ForwardTarget } from './forward.ts'

/** What a front needs to begin; it passes requests on to control. */
export interface FrontStart extends ForwardTarget {
  /** Where it listens, together with the other fronts. */
  host: string
  port: number
  /** File descriptors of sockets that listen there already; empty: one comes with the message, or it opens one. */
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
  /** The engine cannot be reached: its requests end with this failure, and its slots come back. */
  | { kind: 'unreachable'; engineId: string; failure: SentFailure }
  /**
   * The engine has ended: its requests end with this failure, and its slots are void. `slotsInUse`: how many were, in all
   * processes, if it has ended by itself.
   */
  | { kind: 'ended'; engineId: string; failure: SentFailure; slotsInUse: number | undefined }
  /** What it may use of the limits of organizations and tokens. */
  | { kind: 'credits'; credits: CreditMessage }
  /** Calls of it have got slots. */
  | { kind: 'slots'; slots: LentSlot[] }
  /** Calls of it get no slot; null: control answers the request. */
  | { kind: 'refused'; refusals: { id: string; failure: SentFailure | null }[] }
  /** Why calls of these models wait. */
  | { kind: 'waiting'; reasons: (WaitReason & { modelId: string })[] }
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

/** The slot of one call. */
export interface LentSlot extends Pick<RunningCall, 'id' | 'queuedMs' | 'referenceQueuedMs' | 'hasReference'> {
  engine: GrantedEngine
  /** Whether other calls may use the slot afterwards. */
  keeps: boolean
  loadedMs: number
}

/** What calls of a token have used since the last message. */
export interface TokenUse extends Pick<Settlement, 'organizationId' | 'tokenId' | 'cost' | 'finishedAt'> {
  /** The accounts of the token (see `tokenIdsOf`). */
  tokenIds: readonly string[]
  /** Tokens of models. */
  tokens: number
}

/** Durations of one kind, milliseconds. */
export type Durations<Kind> = Kind & { ms: number[] }

/** What a front has done since its last message. Absent members are empty. */
export interface FrontWork {
  /** Of the calls that have ended. Control does not read them. */
  records?: CallsText
  /** What these calls have used and cost, for each token. */
  uses?: TokenUse[]
  /** What it has used of limits. The records of its calls are in this message or an earlier one. */
  credits?: CreditMessage
  /** Calls that have run for a while, and that `ended` will have. */
  began?: JobRecord[]
  /** Of these calls those whose records are in this message, or that control answers instead. */
  ended?: string[]
  /** The milliseconds of the answered requests of a path and status. */
  answered?: Durations<{ path: string; status: number }>[]
  timings?: Durations<{ kind: Timing; modelId: string }>[]
  /** Model, input and output tokens, flat. */
  tokens?: (string | number)[]
  /** Secrets whose callers it wants to know. */
  secrets?: string[]
  /** Calls that want a slot. */
  wanted?: SlotRequest[]
  /** Those of them that want none any more. */
  withdrawn?: string[]
  /** Of the calls for which it got slots: id, milliseconds, and 1 if they completed, flat. */
  ran?: (string | number)[]
  /** How many requests it is answering itself. */
  open?: number
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
  | { kind: 'fault'; engineId: string; fault: EngineFault }
  /** The engine has sent something, so many milliseconds ago. */
  | { kind: 'progress'; engineId: string; agoMs: number }
  | { kind: 'drained' }
  | { kind: 'left' }
