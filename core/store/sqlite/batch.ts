import { Failure, type FailureCode } from '../../failure.ts'
import { type Connection, meaningOf } from './database.ts'

/** A command by name and its one argument. */
export type SentCommand = readonly [name: string, argument: unknown]

/** A Failure on its way between threads. */
export interface SentFailure {
  code: FailureCode
  message: string
  retryAfterMs?: number
  /** For the log of the other side: the stack of what was thrown. */
  cause?: string
}

/** What came of a batch: one value per command, and at these positions a failure instead. */
export interface Answers {
  values: unknown[]
  failures: [at: number, failure: SentFailure][]
}

/** What commands keep in memory of a transaction, and what is to become of it when that ends. */
export interface TransactionMemory {
  /** Where it stands, to come back to when what follows is undone. */
  mark(): () => void
  /** The last statements of the transaction. */
  write(): void
  /** The transaction was undone. */
  forget(): void
}

export type CommandTable = Readonly<Record<string, (argument: never) => unknown>>

/**
 * Runs many commands as one transaction with one commit, which is one fsync. One that fails is undone alone and
 * answered with its failure. What concerns all of them (no room, broken disk, locked by another process) is thrown
 * with nothing changed; `meaningOf` says what it is.
 *
 * Savepoints make SQLite copy every page that a command touches first, which was a third of the work. So all commands
 * run without them, and only a group in which one fails is undone and run again with a savepoint each.
 */
export function openBatch(
  connection: Connection,
  commands: CommandTable,
  memory: TransactionMemory,
): (asked: readonly SentCommand[]) => Answers {
  const begin = connection.prepare('BEGIN IMMEDIATE')
  const commit = connection.prepare('COMMIT')
  const savepoint = connection.prepare('SAVEPOINT command')
  const keep = connection.prepare('RELEASE command')
  const undo = connection.prepare('ROLLBACK TO command')

  function run([name, argument]: SentCommand): unknown {
    const command = commands[name] as ((argument: unknown) => unknown) | undefined
    if (!command) throw new Error(`No store command '${name}'`)
    return command(argument)
  }

  const together = (asked: readonly SentCommand[]): Answers => ({ values: asked.map(run), failures: [] })

  function apart(asked: readonly SentCommand[]): Answers {
    const answers: Answers = { values: [], failures: [] }
    for (const [at, one] of asked.entries()) {
      savepoint.run()
      const back = memory.mark()
      try {
        answers.values.push(run(one))
      } catch (thrown) {
        // SQLite may have rolled back everything on its own: then the commands before this one are gone as well.
        if (meaningOf(thrown) !== 'command' || !connection.inTransaction) throw thrown
        undo.run()
        back()
        answers.values.push(undefined)
        answers.failures.push([at, sendable(thrown)])
      }
      keep.run()
    }
    return answers
  }

  function transaction(work: (asked: readonly SentCommand[]) => Answers, asked: readonly SentCommand[]): Answers {
    begin.run()
    try {
      const answers = work(asked)
      memory.write()
      commit.run()
      return answers
    } catch (thrown) {
      if (connection.inTransaction) connection.exec('ROLLBACK')
      memory.forget()
      throw thrown
    }
  }

  return asked => {
    try {
      return transaction(together, asked)
    } catch (thrown) {
      if (meaningOf(thrown) !== 'command') throw thrown
      return transaction(apart, asked)
    }
  }
}

/** A failure as it crosses a thread; what is not a Failure becomes `internal_error` with its stack as the cause. */
export function sendable(thrown: unknown): SentFailure {
  const failure = Failure.from(thrown)
  const { code, message, retryAfterMs, cause } = failure
  return { code, message, retryAfterMs, cause: cause instanceof Error ? (cause.stack ?? cause.message) : undefined }
}

export const received = ({ code, message, retryAfterMs, cause }: SentFailure): Failure =>
  new Failure(code, message, { retryAfterMs, cause })
