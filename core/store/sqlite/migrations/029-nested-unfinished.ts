/** Finds the unfinished executions that nodes of an execution run. */
export const nestedUnfinished = `
DROP INDEX executions_of_parent;
CREATE INDEX executions_of_parent ON executions (parent_execution)
  WHERE parent_execution IS NOT NULL AND finished_at IS NULL;
`
