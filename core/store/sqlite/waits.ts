import type { Statements } from '../method-table.ts'
import type { NewWait, Wait } from '../waits.ts'
import { pageOf, selected } from './columns.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './write-context.ts'

/** How many waits a page looks at. */
const maxScanned = 1_000

/** Reads of nodes that wait; short statements on a read-only connection. */
export function waitReads(connection: Connection) {
  const columns = `${selected('organizationId, awaits, digest, createdAt, remindAt, dueAt', 'w')}, jobs.id AS jobId,
    e.id AS executionId, n.node_id AS nodeId, jobs.item, e.workflow_id AS workflowId, definition ->> 'name' AS workflowName, origin,
    inputs AS request`
  const from = `FROM waits AS w JOIN jobs ON jobs.number = w.number JOIN executions AS e ON e.number = jobs.execution
    JOIN execution_nodes AS n ON n.execution = jobs.execution AND n.node = jobs.node
    JOIN execution_plans AS p ON p.execution = jobs.execution JOIN job_inputs AS i ON i.number = w.number`
  const one = connection.query<Wait>`SELECT ${columns} ${from} WHERE jobs.organization_id = ? AND jobs.id = ?`
  const numbered = connection.query<Wait>`SELECT ${columns} ${from} WHERE w.number = ?`
  const ofDigest = connection.query<Wait>`SELECT ${columns} ${from} WHERE w.digest = ?`
  const due = connection.query<Wait>`SELECT ${columns} ${from} WHERE w.due_at IS NOT NULL AND w.due_at <= ?
    ORDER BY w.due_at LIMIT ?`
  const nextDue = connection.scalar<number | null>`SELECT min(at) FROM (
      SELECT min(due_at) AS at FROM waits WHERE due_at IS NOT NULL
      UNION ALL SELECT min(remind_at) FROM waits WHERE remind_at IS NOT NULL)`
  const numberOf = connection.scalar<number>`SELECT number FROM jobs WHERE organization_id = ? AND id = ?`
  const listed = connection.query<{ number: number; jobId: string; executionId: string; workflowId: string | null }>`
    SELECT w.number, jobs.id AS jobId, e.id AS executionId, e.workflow_id AS workflowId
    FROM waits AS w JOIN jobs ON jobs.number = w.number JOIN executions AS e ON e.number = jobs.execution
    WHERE w.organization_id = ? AND w.awaits = ? AND w.number < ? ORDER BY w.number DESC LIMIT ?`

  return {
    'waits.find': (organizationId, jobId) => one.get(organizationId, jobId),
    'waits.withDigest': digest => ofDigest.get(Buffer.from(digest)),
    'waits.list'(organizationId, { awaits, limit, after, executionId, workflowId }) {
      const before = after === undefined ? Number.MAX_SAFE_INTEGER : (numberOf.get(organizationId, after) ?? 0)
      const found: { number: number; jobId: string }[] = []
      let [scanned, last] = [0, '']
      // One more than the limit shows whether there is a next page.
      for (const row of listed.iterate(organizationId, awaits, before, maxScanned)) {
        scanned++
        last = row.jobId
        if (executionId !== undefined && row.executionId !== executionId) continue
        if (workflowId !== undefined && row.workflowId !== workflowId) continue
        if (found.push(row) > limit) break
      }
      const { page, next } = pageOf(found, limit)
      const waits = page.flatMap(({ number }) => numbered.all(number))
      return { waits, next: next?.jobId ?? (scanned === maxScanned ? last : null) }
    },
    'waits.due': (now, limit) => due.all(now, limit),
    'waits.nextDue': () => nextDue.get() ?? null,
  } satisfies Statements
}

/** Returns the function that adds the wait of a job that was set aside now, in the caller's transaction. */
export function openWaitRows(connection: Connection) {
  const insert = connection.statement`INSERT INTO waits (number, organization_id, awaits, digest, created_at, remind_at,
    due_at) VALUES (?, ?, ?, ?, ?, ?, ?)`
  return (job: { number: number; organizationId: string; awaits: string; at: number }, wait: NewWait): void => {
    const { number, organizationId, awaits, at } = job
    insert.run(number, organizationId, awaits, Buffer.from(wait.digest), at, wait.remindAt, wait.dueAt)
  }
}

/** The writer's commands for nodes that wait. A trigger removes the row of a wait when its job is set aside no more. */
export function waitCommands(connection: Connection, { events, effects }: WriteContext) {
  const due = connection.query<{
    number: number
    organizationId: string
    execution: number
    node: number
    item: number | null
  }>`
    SELECT w.number, w.organization_id AS organizationId, execution, node, item FROM waits AS w JOIN jobs USING (number)
    WHERE remind_at IS NOT NULL AND remind_at <= ? ORDER BY remind_at LIMIT ?`
  const reminded = connection.statement`UPDATE waits SET remind_at = NULL WHERE number = ?`

  return {
    'waits.remind'(now, limit) {
      const rows = due.all(now, limit)
      for (const { number, organizationId, execution, node, item } of rows) {
        reminded.run(number)
        events.addOfExecution(execution, organizationId, 'workflow_execution.node.reminder', now, node, item)
        effects.add('organizations', organizationId)
      }
      return rows.length
    },
  } satisfies Statements
}
