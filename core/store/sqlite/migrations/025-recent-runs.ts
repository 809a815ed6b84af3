/** The last completed runs of each task on each model, by organization: as many as `maxRecentRuns`, each overwritten in turn. */
export const recentRuns = `
CREATE TABLE recent_runs (
  organization_id TEXT NOT NULL,
  model_id TEXT NOT NULL,
  task TEXT NOT NULL,
  place INTEGER NOT NULL CHECK (place >= 0),
  run_ms INTEGER NOT NULL CHECK (run_ms >= 0),
  cost INTEGER NOT NULL CHECK (cost >= 0),
  at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, model_id, task, place)
) STRICT, WITHOUT ROWID;
`
