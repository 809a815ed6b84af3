/**
 * Jobs get the priority class in which they wait. The default of the column is for the rows that are there already:
 * whoever inserts a job names its class.
 */
export const jobClass = `
ALTER TABLE jobs ADD COLUMN class TEXT NOT NULL DEFAULT 'async' CHECK (class IN ('workflow', 'async', 'batch'));
UPDATE jobs SET class = 'workflow' WHERE execution IS NOT NULL;
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (model_id, class, organization_id, rank) WHERE status = 'pending' AND not_before = 0;
`
