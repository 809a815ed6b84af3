/** The part of the first schema that workflows and their executions need. */
export const workflowTables = `
CREATE TABLE workflows (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  folded TEXT NOT NULL,
  version INTEGER NOT NULL CHECK (version >= 1),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id)
) STRICT;
CREATE INDEX workflows_changed ON workflows (organization_id, updated_at, id);

CREATE TABLE workflow_versions (
  organization_id TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  definition TEXT NOT NULL CHECK (json_type(definition) = 'object'),
  dag TEXT NOT NULL,
  PRIMARY KEY (organization_id, workflow_id, version),
  FOREIGN KEY (organization_id, workflow_id) REFERENCES workflows (organization_id, id)
) STRICT;

CREATE TABLE executions (
  number INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  workflow_id TEXT,
  workflow_version INTEGER,
  on_failure TEXT NOT NULL CHECK (on_failure IN ('fail_fast', 'continue')),
  priority INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed', 'cancelled', 'timed_out')),
  error TEXT CHECK (json_type(error) = 'object'),
  timeout_ms INTEGER NOT NULL CHECK (timeout_ms > 0),
  retention_ms INTEGER CHECK (retention_ms >= 0),
  metadata TEXT,
  parent_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  timeout_at INTEGER,
  finished_at INTEGER,
  expires_at INTEGER,
  nodes INTEGER NOT NULL,
  running INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0),
  completed INTEGER NOT NULL,
  failed INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cost INTEGER NOT NULL DEFAULT 0,
  CHECK (running + completed + failed + skipped <= nodes),
  UNIQUE (organization_id, id),
  CHECK ((status IN ('pending', 'running')) = (finished_at IS NULL))
) STRICT;
CREATE INDEX executions_workflow ON executions (organization_id, workflow_id, id);
CREATE INDEX executions_timeout ON executions (timeout_at) WHERE finished_at IS NULL AND timeout_at IS NOT NULL;
CREATE INDEX executions_expiring ON executions (expires_at) WHERE expires_at IS NOT NULL;
CREATE TRIGGER executions_end_once BEFORE UPDATE OF status ON executions WHEN OLD.finished_at IS NOT NULL BEGIN
  SELECT RAISE(ABORT, 'an execution that has ended does not change any more');
END;

-- What never changes and may be large: apart, because a row is written anew whenever anything in it changes.
CREATE TABLE execution_plans (
  execution INTEGER NOT NULL PRIMARY KEY REFERENCES executions (number),
  definition TEXT NOT NULL,
  input_params TEXT NOT NULL,
  plan TEXT NOT NULL,
  dag TEXT NOT NULL,
  origin TEXT NOT NULL
) STRICT;

CREATE TABLE execution_nodes (
  execution INTEGER NOT NULL REFERENCES executions (number),
  node INTEGER NOT NULL,
  node_id TEXT NOT NULL,
  task TEXT NOT NULL,
  model_id TEXT NOT NULL,
  on_error TEXT NOT NULL CHECK (on_error IN ('fail', 'continue')),
  status TEXT NOT NULL CHECK (status IN
    ('pending', 'ready', 'completed', 'failed', 'skipped', 'cancelled', 'timed_out')),
  job_id TEXT,
  cached INTEGER NOT NULL CHECK (cached IN (0, 1)),
  at INTEGER NOT NULL,
  PRIMARY KEY (execution, node),
  UNIQUE (execution, node_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX execution_nodes_reused ON execution_nodes (job_id) WHERE cached = 1;

CREATE TABLE cached_results (
  key TEXT NOT NULL PRIMARY KEY,
  job_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX cached_results_job ON cached_results (job_id);
`
