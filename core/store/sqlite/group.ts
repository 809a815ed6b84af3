import type { CommandTable } from './batch.ts'
import { type Answers, openBatch, type SentCommand, type SentFailure, type TransactionMemory } from './batch.ts'
import { growingCommands } from './commands.ts'
import { type Connection, meaningOf } from './database.ts'

/** How long a caller should wait when the disk has no room. */
export const fullRetryMs = 5000

export const diskFull: SentFailure = {
  code: 'disk_full',
  message:
    'The disk of this server is full: it takes no new work until there is room. Running work goes on. Retry later.',
  retryAfterMs: fullRetryMs,
}

/**
 * Runs a group of commands as one transaction. When the disk has no room, what would only add work is refused and the
 * rest is tried again with the ballast given up, so that what runs can finish and be cancelled.
 * Throws only what `meaningOf` calls busy or fatal.
 */
export function openGroup(
  connection: Connection,
  commands: CommandTable,
  memory: TransactionMemory,
  releaseBallast: () => void,
) {
  const batch = openBatch(connection, commands, memory)
  const refuses = (name: string) => growingCommands.has(name) || name === 'jobs.claim'

  function withoutRoom(asked: readonly SentCommand[]): Answers {
    releaseBallast()
    const essential = asked.filter(([name]) => !refuses(name))
    const done = tryAgain(essential)
    const answers: Answers = { values: [], failures: [] }
    let next = 0
    for (const [at, [name]] of asked.entries()) {
      const position = refuses(name) ? undefined : next++
      const failure = position === undefined ? diskFull : done.failures.find(([of]) => of === position)?.[1]
      answers.values.push(position === undefined ? undefined : done.values[position])
      if (failure) answers.failures.push([at, failure])
    }
    return answers
  }

  /** Together if they fit, otherwise one by one: a large result that does not fit must not keep a cancel from it. */
  function tryAgain(asked: readonly SentCommand[]): Answers {
    try {
      return batch(asked)
    } catch (thrown) {
      if (meaningOf(thrown) !== 'full') throw thrown
      if (asked.length === 1) return { values: [undefined], failures: [[0, diskFull]] }
      const each = asked.map(one => tryAgain([one]))
      return {
        values: each.flatMap(({ values }) => values),
        failures: each.flatMap(({ failures }, at) =>
          failures.map(([, failure]): [number, SentFailure] => [at, failure]),
        ),
      }
    }
  }

  return (asked: readonly SentCommand[]): { answers: Answers; full: boolean } => {
    try {
      return { answers: batch(asked), full: false }
    } catch (thrown) {
      if (meaningOf(thrown) !== 'full') throw thrown
      return { answers: withoutRoom(asked), full: true }
    }
  }
}
