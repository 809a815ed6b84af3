import type { LogFields } from '../../log.ts'
import type { Store } from '../store.ts'
import type { UsagePage, UsageQuery } from '../usage-records.ts'
import type { CommitEffects } from '../workflows.ts'
import type { Answers, SentCommand, SentFailure } from './batch.ts'
import type { CommandName } from './commands.ts'
import type { UsageByModel } from './usage-totals.ts'

/** The first message to a thread of this folder: its role. */
export type ThreadStart =
  | {
      /** `server` repairs and checks before it writes; `admin` writes beside a server that has done so. */
      role: 'server' | 'admin'
      dataDir: string
      boot: string
      /** Whether there has been a database here before. */
      created: boolean
    }
  | { role: 'copy'; from: string; to: string }
  | { role: 'reads'; dataDir: string }

export type ToWriter = { kind: 'commands'; commands: SentCommand[] } | { kind: 'close' }

export type FromWriter =
  | { kind: 'ready'; recovery: Store['recovery']; commands: CommandName[] }
  | { kind: 'refused'; exitCode: 64 | 65 | 74; message: string }
  | { kind: 'log'; level: 'info' | 'warn' | 'error'; message: string; fields: LogFields }
  /** The answers to the oldest unanswered commands, in order. `full`: the disk had no space for all of them. */
  | {
      kind: 'answers'
      answers: Answers
      full: boolean
      effects: CommitEffects | undefined
      used: UsageByModel | undefined
    }
  | { kind: 'fatal'; code: string; message: string }
  | { kind: 'closed' }

export type FromCopy =
  | { kind: 'progress'; done: number; total: number }
  | { kind: 'copied'; bytes: number }
  | { kind: 'refused'; exitCode: 64 | 65 | 74; message: string }

export interface ToReads {
  query: UsageQuery
}

/** The answer to the oldest unanswered query. */
export type FromReads = { page: UsagePage } | { failure: SentFailure }
