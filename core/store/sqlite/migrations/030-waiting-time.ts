/**
 * The time limit of an execution stops while it only waits: `remaining_ms` is what is left of it then, and `timeout_at` is
 * null. Waits without a time limit of their own get one of 90 days. Nodes count their items that only wait.
 */
export const waitingTime = `
ALTER TABLE executions ADD COLUMN remaining_ms INTEGER;
ALTER TABLE execution_nodes ADD COLUMN items_waiting INTEGER NOT NULL DEFAULT 0 CHECK (items_waiting >= 0);
UPDATE waits SET due_at = created_at + 7776000000 WHERE due_at IS NULL;
UPDATE executions SET remaining_ms = timeout_at - updated_at, timeout_at = NULL
WHERE finished_at IS NULL AND waiting > 0 AND timeout_at > updated_at AND NOT EXISTS (SELECT 1 FROM jobs
  WHERE jobs.execution = executions.number AND finished_at IS NULL
  AND coalesce(awaits, '') NOT IN ('approval', 'event', 'time'));
`
