/**
 * What the job of a node awaits while it is set aside, outside every queue; null for all others. Executions count their
 * nodes whose jobs are set aside.
 */
export const awaits = `
ALTER TABLE jobs ADD COLUMN awaits TEXT CHECK (awaits IS NULL
  OR (awaits IN ('items', 'approval', 'event', 'time', 'execution') AND status = 'pending' AND node IS NOT NULL));
ALTER TABLE executions ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0 CHECK (waiting >= 0);
`
