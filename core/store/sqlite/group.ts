import { Failure } from '../../failure.ts'
import { growingCommands } from './commands.ts'
import { type Connection, meaningOf } from './database.ts'
import { diskFull, type SentFailure, sendable } from './sent-failure.ts'

/** A command by name, and its arguments. */
export type SentCommand = readonly [name: string, given: readonly unknown[]]

/** The results of a group: one value per command, and at these positions a failure instead. */
export interface Answers {
  values: unknown[]
  failures: [at: number, failure: SentFailure][]
}

/** What commands keep in memory during a transaction. */
export interface TransactionMemory {
  /** Call it first in a transaction. */
  begin(): void
  /** Returns a function that reverts to this point when later commands are rolled back. */
  mark(): () => void
  /** Call it last in the transaction. Afterwards the same transaction may continue, and write again. */
  write(): void
  /** Call it when the transaction was rolled back. */
  forget(): void
}

type CommandTable = Readonly<Record<string, (...given: never[]) => unknown>>

/**
 * Runs many commands as one transaction with one commit, which is one fsync. A failing command is rolled back alone and
 * answered with its failure. A command that refuses returns its Failure, which rolls back nothing. An error that concerns
 * all of them (disk full, disk broken, locked by another process) is thrown with nothing changed; `meaningOf` classifies it.
 *
 * Savepoints make SQLite copy every page before a command changes it, which was a third of the work. So all commands
 * run without savepoints, and only a group with a failing command is rolled back and run again with one for each. Each
 * command then also writes what it keeps in memory, so that what cannot be written fails this command alone.
 */
export function openTransactions(
  connection: Connection,
  commands: CommandTable,
  memory: TransactionMemory,
): (commandsSent: readonly SentCommand[]) => Answers {
  const begin = connection.statement`BEGIN IMMEDIATE`
  const commit = connection.statement`COMMIT`
  const savepoint = connection.statement`SAVEPOINT command`
  const keep = connection.statement`RELEASE command`
  const undo = connection.statement`ROLLBACK TO command`

  function run([name, given]: SentCommand): unknown {
    const command = commands[name] as ((...given: readonly unknown[]) => unknown) | undefined
    if (!command) throw new Error(`No store command '${name}'`)
    return command(...given)
  }

  function together(commandsSent: readonly SentCommand[]): Answers {
    const answers: Answers = { values: [], failures: [] }
    for (const one of commandsSent) add(answers, run(one))
    memory.write()
    return answers
  }

  function apart(commandsSent: readonly SentCommand[]): Answers {
    const answers: Answers = { values: [], failures: [] }
    for (const one of commandsSent) {
      savepoint.run()
      const revert = memory.mark()
      try {
        const returned = run(one)
        memory.write()
        add(answers, returned)
      } catch (thrown) {
        // SQLite may have rolled back the whole transaction on its own, including the commands before this one.
        if (meaningOf(thrown) !== 'command' || !connection.inTransaction) throw thrown
        undo.run()
        revert()
        add(answers, Failure.from(thrown))
      }
      keep.run()
    }
    return answers
  }

  function transaction(
    work: (commandsSent: readonly SentCommand[]) => Answers,
    commandsSent: readonly SentCommand[],
  ): Answers {
    begin.run()
    memory.begin()
    try {
      const answers = work(commandsSent)
      commit.run()
      return answers
    } catch (thrown) {
      if (connection.inTransaction) connection.exec('ROLLBACK')
      memory.forget()
      throw thrown
    }
  }

  return commandsSent => {
    try {
      return transaction(together, commandsSent)
    } catch (thrown) {
      if (meaningOf(thrown) !== 'command') throw thrown
      return transaction(apart, commandsSent)
    }
  }
}

/** Adds what a command returned. A Failure refuses: the command has changed nothing, and nothing is rolled back. */
function add({ values, failures }: Answers, returned: unknown): void {
  if (!(returned instanceof Failure)) return void values.push(returned)
  failures.push([values.length, sendable(returned)])
  values.push(undefined)
}

/**
 * Runs a group of commands as one transaction. If the disk is full, refuses the commands that add work, erases the
 * ballast and runs the others again, so that running work can finish and be cancelled. Throws only what `meaningOf`
 * calls busy or fatal.
 */
export function openGroup(
  connection: Connection,
  commands: CommandTable,
  memory: TransactionMemory,
  releaseBallast: () => void,
) {
  const run = openTransactions(connection, commands, memory)
  const refuses = (name: string) => growingCommands.has(name) || name === 'jobs.claim'

  function withoutRoom(sent: readonly SentCommand[]): Answers {
    releaseBallast()
    const essential = sent.filter(([name]) => !refuses(name))
    const answered = tryAgain(essential)
    const answers: Answers = { values: [], failures: [] }
    let next = 0
    for (const [at, [name]] of sent.entries()) {
      const position = refuses(name) ? undefined : next++
      const failure = position === undefined ? diskFull : answered.failures.find(([of]) => of === position)?.[1]
      answers.values.push(position === undefined ? undefined : answered.values[position])
      if (failure) answers.failures.push([at, failure])
    }
    return answers
  }

  /**
   * Runs them together if they fit, otherwise one by one: a large result that does not fit must not prevent a cancel.
   */
  function tryAgain(sent: readonly SentCommand[]): Answers {
    try {
      return run(sent)
    } catch (thrown) {
      if (meaningOf(thrown) !== 'full') throw thrown
      if (sent.length === 1) return { values: [undefined], failures: [[0, diskFull]] }
      const each = sent.map(one => tryAgain([one]))
      return {
        values: each.flatMap(({ values }) => values),
        failures: each.flatMap(({ failures }, at) =>
          failures.map(([, failure]): [number, SentFailure] => [at, failure]),
        ),
      }
    }
  }

  return (sent: readonly SentCommand[]): { answers: Answers; full: boolean } => {
    try {
      return { answers: run(sent), full: false }
    } catch (thrown) {
      if (meaningOf(thrown) !== 'full') throw thrown
      return { answers: withoutRoom(sent), full: true }
    }
  }
}
