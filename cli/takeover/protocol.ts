import { join } from 'node:path'
import type { HandedSpend, SpendChange } from '../../core/admission/handed-spend.ts'
import { Failure } from '../../core/failure.ts'
import type { UsedSlots } from '../../core/models/used-slots.ts'
import type { SentFailure } from '../../core/store/sqlite/sent-failure.ts'
import type { ForwardTarget } from '../../server/fronts/forward.ts'

/** Both servers must speak the same one. It changes with these messages and with the commands of the store. */
export const protocolVersion = 5

/** Options of `infer serve`; paths are absolute, the duration is in milliseconds. */
export interface ServeFlags {
  config?: string | undefined
  listen?: string | undefined
  https?: true | undefined
  cert?: string | undefined
  key?: string | undefined
  drainTimeout?: number | undefined
  logLevel?: string | undefined
}

/** What `infer serve --takeover` sends to the running server, as a line of JSON. */
export interface TakeoverRequest {
  protocol: number
  /** The executable of the new server and the arguments before `serve`. */
  program: readonly string[]
  /** Options that differ from those of the running server. */
  flags: ServeFlags
  /** The executable of the running version, if it was moved. */
  fallback?: readonly string[] | undefined
}

/** What the running server answers, as lines of JSON; the last one is `done` or `failed`. */
export type TakeoverReport =
  | { kind: 'progress'; text: string }
  | { kind: 'done'; pid: number }
  | { kind: 'failed'; message: string; needsRestart: boolean }

/** What the new server gets with its start. */
export interface Begin {
  protocol: number
  /** How many listening sockets it gets. */
  sockets: number
  /** The boot id of the old server, whose engines still run. */
  bootId: string
}

/** Messages from the old server to the new one. */
export type ToSuccessor =
  | { kind: 'handedOver'; spend: HandedSpend; slots: UsedSlots }
  | { kind: 'command'; id: number; name: string; given: readonly unknown[] }
  | { kind: 'spend'; change: SpendChange }
  /** Its requests use these slots now. */
  | { kind: 'slots'; slots: UsedSlots }

/** Messages from the new server to the old one. */
export type FromSuccessor =
  | { kind: 'prepared' }
  | { kind: 'failed'; message: string }
  /** It serves, and takes the requests of the old one there. */
  | { kind: 'serving'; forwarding: ForwardTarget }
  /** Nothing depends on the old process any more, besides its own requests. */
  | { kind: 'settled' }
  | { kind: 'answer'; id: number; value: unknown; failure: SentFailure | undefined }

/** The kernel limits the path of a socket to 108 bytes, with the final zero byte. */
const longestSocketPath = 104

/**
 * Returns the path of the Unix socket over which the server with this process id can be replaced. Throws Failure `conflict` if the path of the data
 * directory is too long for one.
 */
export function controlPath(dataDir: string, pid: number): string {
  const path = join(dataDir, 'run', `control-${pid}`)
  if (Buffer.byteLength(path) <= longestSocketPath) return path
  throw new Failure(
    'conflict',
    `The path of the data directory ${dataDir} is too long for a take-over. Move it to a shorter path, or stop the server and start the new one.`,
  )
}

/** Returns the arguments of `infer serve` for these options. */
export const serveArguments = (dataDir: string, flags: ServeFlags): string[] => [
  'serve',
  '--data-dir',
  dataDir,
  '--no-starter',
  ...(flags.config === undefined ? [] : ['--config', flags.config]),
  ...(flags.listen === undefined ? [] : ['--listen', flags.listen]),
  ...(flags.https ? ['--https'] : []),
  ...(flags.cert === undefined ? [] : ['--cert', flags.cert]),
  ...(flags.key === undefined ? [] : ['--key', flags.key]),
  ...(flags.drainTimeout === undefined ? [] : ['--drain-timeout', `${flags.drainTimeout}ms`]),
  ...(flags.logLevel === undefined ? [] : ['--log-level', flags.logLevel]),
]
