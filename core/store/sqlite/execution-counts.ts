import type { CountChange } from '../../dag/advance.ts'
import type { Connection } from './database.ts'

/** Running, completed, failed, skipped, input tokens, output tokens, cost, and the time of the last change. */
type Counts = [number, number, number, number, number, number, number, number]

/**
 * Counts the nodes of each execution by status, and their usage. Many nodes of one execution may change in one commit:
 * the changes of a transaction are added up here and written once before its commit.
 */
export function openExecutionCounts(connection: Connection) {
  const add = connection.prepare(
    `UPDATE executions SET running = running + ?, completed = completed + ?, failed = failed + ?, skipped = skipped + ?,
       input_tokens = input_tokens + ?, output_tokens = output_tokens + ?, cost = cost + ?, updated_at = ?
     WHERE number = ?`,
  )
  let counts = new Map<number, Counts>()

  return {
    /** Adds to the counts of an execution; values may be negative. */
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
    /** Returns a function that reverts to this point when later commands are rolled back. */
    mark(): () => void {
      const snapshot = new Map(counts)
      return () => {
        counts = snapshot
      }
    },
    /** Call it last in a transaction. */
    write(): void {
      for (const [execution, by] of counts) add.run(...by, execution)
      counts.clear()
    },
    /** Call it when the transaction was rolled back. */
    forget(): void {
      counts.clear()
    },
  }
}
export type ExecutionCounts = ReturnType<typeof openExecutionCounts>
