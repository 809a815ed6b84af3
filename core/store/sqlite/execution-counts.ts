import type { CountChange } from '../../dag/advance.ts'
import { noUsage } from '../../usage.ts'
import type { Connection } from './database.ts'
import { usageColumnNames, usageValues } from './usage-columns.ts'

const columns = ['running', 'completed', 'failed', 'skipped', 'cost', ...usageColumnNames]

/** What is added to the columns, in their order. */
const addends = ({
  running = 0,
  completed = 0,
  failed = 0,
  skipped = 0,
  cost = 0,
  ...usage
}: CountChange): number[] => [
  running,
  completed,
  failed,
  skipped,
  cost,
  ...usageValues({ ...noUsage, ...usage }).map(value => value ?? 0),
]

/**
 * Counts the nodes of each execution by status, and their usage. Many nodes of one execution may change in one commit:
 * the changes of a transaction are added up here and written once before its commit.
 */
export function openExecutionCounts(connection: Connection) {
  const add = connection.prepare(
    `UPDATE executions SET ${columns.map(name => `${name} = ${name} + ?`).join(', ')}, updated_at = ? WHERE number = ?`,
  )
  let counts = new Map<number, { by: number[]; at: number }>()

  return {
    /** Adds to the counts of an execution; values may be negative. */
    move(execution: number, at: number, change: CountChange): void {
      const before = counts.get(execution)?.by
      const by = addends(change).map((value, which) => value + (before?.[which] ?? 0))
      counts.set(execution, { by, at })
    },
    mark() {
      const snapshot = new Map(counts)
      return () => void (counts = snapshot)
    },
    write(): void {
      for (const [execution, { by, at }] of counts) add.run(...by, at, execution)
      counts.clear()
    },
    forget(): void {
      counts.clear()
    },
  }
}
export type ExecutionCounts = ReturnType<typeof openExecutionCounts>
