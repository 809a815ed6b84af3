/**
 * Adds the priority class in which a job waits. The column's default is for existing rows: an INSERT names the class.
 */
export const jobClass = `
ALTER TABLE jobs ADD COLUMN class TEXT NOT NULL DEFAULT 'async' CHECK (class IN ('workflow', 'async', 'batch'));
UPDATE jobs SET class = 'workflow' WHERE execution IS NOT NULL;
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (model_id, class, organization_id, rank) WHERE status = 'pending' AND not_before = 0;
`
