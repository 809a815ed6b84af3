/** Nodes whose task runs once for each item of a list: the jobs of the items, and how many there are of each kind. */
export const items = `
ALTER TABLE jobs ADD COLUMN item INTEGER CHECK (item IS NULL OR (item >= 0 AND node IS NOT NULL));
CREATE INDEX jobs_awaiting ON jobs (awaits) WHERE awaits IS NOT NULL;
DROP INDEX jobs_execution;
CREATE INDEX jobs_execution ON jobs (execution, item, node) WHERE execution IS NOT NULL;

ALTER TABLE execution_nodes ADD COLUMN items INTEGER CHECK (items >= 0);
ALTER TABLE execution_nodes ADD COLUMN items_running INTEGER NOT NULL DEFAULT 0 CHECK (items_running >= 0);
ALTER TABLE execution_nodes ADD COLUMN items_completed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execution_nodes ADD COLUMN items_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execution_nodes ADD COLUMN items_cost INTEGER NOT NULL DEFAULT 0 CHECK (items_cost >= 0);

CREATE TABLE execution_items (
  execution INTEGER NOT NULL,
  node INTEGER NOT NULL,
  item INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('ready', 'completed', 'failed', 'cancelled')),
  job_id TEXT NOT NULL,
  cached INTEGER NOT NULL DEFAULT 0 CHECK (cached IN (0, 1)),
  at INTEGER NOT NULL,
  PRIMARY KEY (execution, node, item),
  FOREIGN KEY (execution, node) REFERENCES execution_nodes (execution, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX execution_items_reused ON execution_items (job_id) WHERE cached = 1;
`
