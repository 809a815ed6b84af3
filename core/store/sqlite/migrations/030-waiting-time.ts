/** Whether a job awaits something outside of its execution, and nothing of that is queued or runs. */
const waits = `coalesce(jobs.awaits IN ('approval', 'event', 'time') OR (jobs.awaits = 'execution' AND EXISTS (SELECT 1
  FROM executions AS other WHERE other.organization_id = jobs.organization_id AND other.parent_job = jobs.id
  AND other.remaining_ms IS NOT NULL)), 0)`

/** Stops the clock of executions that only wait, also for others whose clock stands still. */
const stopClocks = `UPDATE executions SET remaining_ms = timeout_at - updated_at, timeout_at = NULL
WHERE finished_at IS NULL AND waiting > 0 AND timeout_at > updated_at AND NOT EXISTS (SELECT 1 FROM jobs
  WHERE jobs.execution = executions.number AND jobs.finished_at IS NULL AND NOT ${waits});
`
/** How deep executions may run within each other. */
const depth = 5

/**
 * The time limit of an execution stops while it only waits: `remaining_ms` is what is left of it then, and `timeout_at` is
 * null. Waits without a time limit of their own get one of 90 days. Nodes count their items that only wait.
 */
export const waitingTime = `
ALTER TABLE executions ADD COLUMN remaining_ms INTEGER;
ALTER TABLE execution_nodes ADD COLUMN items_waiting INTEGER NOT NULL DEFAULT 0 CHECK (items_waiting >= 0);
UPDATE waits SET due_at = created_at + 7776000000 WHERE due_at IS NULL;
${stopClocks.repeat(depth + 1)}
UPDATE execution_nodes SET items_waiting = (SELECT count(*) FROM jobs WHERE jobs.execution = execution_nodes.execution
  AND jobs.item IS NOT NULL AND jobs.node = execution_nodes.node AND jobs.finished_at IS NULL AND ${waits})
WHERE items > 0 AND execution IN (SELECT number FROM executions WHERE finished_at IS NULL);
`
