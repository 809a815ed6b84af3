import type { CountChange } from '../../dag/advance.ts'
import type { Connection } from './database.ts'

/** Running, completed, failed, skipped, input tokens, output tokens, cost, and when that changed last. */
type Counts = [number, number, number, number, number, number, number, number]

/**
 * How many nodes of each execution stand where, and what they have used. Many nodes of one may move in one commit: what
 * the commands of a transaction count is added up here, and written once before its commit.
 */
export function openExecutionCounts(connection: Connection) {
  const add = connection.prepare(
    `UPDATE executions SET running = running + ?, completed = completed + ?, failed = failed + ?, skipped = skipped + ?,
       input_tokens = input_tokens + ?, output_tokens = output_tokens + ?, cost = cost + ?, updated_at = ?
     WHERE number = ?`,
  )
  let counts = new Map<number, Counts>()

  return {
    /** So many nodes more, or fewer, of the execution. */
    move(execution: number, at: number, change: CountChange): void {
      const {
        running = 0,
        completed = 0,
        failed = 0,
        skipped = 0,
        inputTokens = 0,
        outputTokens = 0,
        cost = 0,
      } = change
      const by = [running, completed, failed, skipped, inputTokens, outputTokens, cost]
      const before = counts.get(execution)
      counts.set(execution, [...by.map((value, which) => value + (before?.[which] ?? 0)), at] as Counts)
    },
    /** What was counted so far, to come back to when what follows is undone. */
    mark(): () => void {
      const then = new Map(counts)
      return () => {
        counts = then
      }
    },
    /** The last statements of a transaction. */
    write(): void {
      for (const [execution, by] of counts) add.run(...by, execution)
      counts.clear()
    },
    /** The transaction was undone. */
    forget(): void {
      counts.clear()
    },
  }
}
export type ExecutionCounts = ReturnType<typeof openExecutionCounts>
