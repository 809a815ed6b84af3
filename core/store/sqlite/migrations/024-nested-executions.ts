/** Executions that wait for others of their workflow: `queued`. */
export const nestedExecutions = `
ALTER TABLE executions ADD COLUMN queued INTEGER NOT NULL DEFAULT 0 CHECK (queued IN (0, 1));
CREATE INDEX executions_queued ON executions (organization_id, workflow_id, priority DESC, number) WHERE queued = 1;
CREATE INDEX executions_running ON executions (organization_id, workflow_id)
  WHERE finished_at IS NULL AND queued = 0 AND workflow_id IS NOT NULL;
`
