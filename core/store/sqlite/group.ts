import type { CommandTable } from './batch.ts'
import { type Answers, openBatch, type SentCommand, type SentFailure, type TransactionMemory } from './batch.ts'
import { growingCommands } from './commands.ts'
import { type Connection, meaningOf } from './database.ts'

/** How long a caller should wait when the disk is full, milliseconds. */
const fullRetryMs = 5000

export const diskFull: SentFailure = {
  code: 'disk_full',
  message:
    'The disk of this server is full: it accepts no new work until there is space. Running work continues. Retry later.',
  retryAfterMs: fullRetryMs,
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
  const batch = openBatch(connection, commands, memory)
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
      return batch(sent)
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
      return { answers: batch(sent), full: false }
    } catch (thrown) {
      if (meaningOf(thrown) !== 'full') throw thrown
      return { answers: withoutRoom(sent), full: true }
    }
  }
}
