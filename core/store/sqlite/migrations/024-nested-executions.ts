/**
 * Executions that wait for others of their workflow (`queued`), that a node of another execution runs (`parent_execution`
 * and `parent_node` are numbers, `parent_job` is the id of the node's job), and the most that one may cost, in millionths
 * of the currency unit.
 */
export const nestedExecutions = `
ALTER TABLE executions ADD COLUMN queued INTEGER NOT NULL DEFAULT 0 CHECK (queued IN (0, 1));
CREATE INDEX executions_queued ON executions (organization_id, workflow_id, priority DESC, number) WHERE queued = 1;
CREATE INDEX executions_running ON executions (organization_id, workflow_id)
  WHERE finished_at IS NULL AND queued = 0 AND workflow_id IS NOT NULL;
ALTER TABLE executions ADD COLUMN parent_execution INTEGER;
ALTER TABLE executions ADD COLUMN parent_node INTEGER;
ALTER TABLE executions ADD COLUMN parent_job TEXT
  CHECK ((parent_job IS NULL) = (parent_execution IS NULL) AND (parent_job IS NULL) = (parent_node IS NULL));
ALTER TABLE executions ADD COLUMN depth INTEGER NOT NULL DEFAULT 0 CHECK (depth BETWEEN 0 AND 5);
ALTER TABLE executions ADD COLUMN continues INTEGER NOT NULL DEFAULT 0 CHECK (continues IN (0, 1));
ALTER TABLE executions ADD COLUMN budget INTEGER CHECK (budget > 0);
CREATE UNIQUE INDEX executions_nested ON executions (organization_id, parent_job) WHERE parent_job IS NOT NULL;
CREATE INDEX executions_of_parent ON executions (parent_execution, parent_node) WHERE parent_execution IS NOT NULL;
`
