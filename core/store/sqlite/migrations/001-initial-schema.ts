/**
 * SQL in a TypeScript string and not in a .sql file: the same import then works from source, in the bundle and in the
 * packed executable, with no loader and no file to find at run time. Once released it is never edited.
 *
 * `number` is the order of arrival and the key of the narrow tables; a clock that jumps cannot change it. Inputs,
 * results and logs are in their own tables, because an UPDATE rewrites the whole row and a job is updated at least
 * twice. `not_before` 0 means due at once: only a delayed job depends on the clock. A start deadline no longer matters
 * once a job has started, hence `attempt = 0` in its index.
 *
 * A large result is in a file, and its row has the file's name. When the row is deleted, for whatever reason, a trigger
 * adds the name to the files to be erased, in the same transaction.
 *
 * The number of the last event has its own table, so that the number of a deleted event is never used again;
 * AUTOINCREMENT would write it with every event, and once per commit is enough.
 *
 * The ledger has one row for each job that has ended and outlives the job. A synchronous call is never queued, so its
 * ledger row is its only row: as a job and a ledger row it cost the writer four times as much, on every request.
 *
 * A ready node runs when its job does: its status 'running' is not stored a second time. Jobs of executions have the
 * execution and the node; a job whose execution was removed has the number of the execution that reuses its result.
 *
 * The unique index of the ledger has the kind in the middle, so that listing the calls of an organization does not scan
 * its jobs. `folded` is the prompt in lower case: SQLite only knows the case of ASCII.
 *
 * An idempotency key is stored as 128 bits of its digest. Keys are random, so every insert touches another page of
 * their index; with the digest the index is a third of the size, and at 128 submits per commit a key costs 14 µs
 * instead of 39.
 */
export const initialSchema = `
CREATE TABLE organizations (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  plan TEXT NOT NULL CHECK (plan IN ('free', 'pro', 'enterprise')),
  status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
  requests_per_minute INTEGER CHECK (requests_per_minute >= 0),
  jobs_per_minute INTEGER CHECK (jobs_per_minute >= 0),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE tokens (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  id TEXT NOT NULL UNIQUE,
  public_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL CHECK (json_type(scopes) = 'array'),
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  hint TEXT NOT NULL,
  models TEXT CHECK (json_type(models) = 'array'),
  status TEXT NOT NULL CHECK (status IN ('active', 'disabled', 'revoked')),
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  last_used_at INTEGER,
  revoked_at INTEGER,
  created_by TEXT,
  PRIMARY KEY (organization_id, id),
  CHECK ((status = 'revoked') = (revoked_at IS NOT NULL))
) STRICT;

CREATE TABLE jobs (
  number INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  task TEXT NOT NULL,
  model_id TEXT NOT NULL,
  slug TEXT,
  priority INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled')),
  attempt INTEGER NOT NULL CHECK (attempt >= 0),
  max_attempts INTEGER NOT NULL CHECK (max_attempts >= 1),
  claims INTEGER NOT NULL CHECK (claims >= attempt),
  crashes INTEGER NOT NULL CHECK (crashes >= 0),
  not_before INTEGER NOT NULL,
  start_by INTEGER,
  timeout_ms INTEGER CHECK (timeout_ms > 0),
  retention_ms INTEGER CHECK (retention_ms >= 0),
  boot TEXT,
  engine_id TEXT,
  metadata TEXT,
  error TEXT CHECK (json_type(error) = 'object'),
  input_tokens INTEGER CHECK (input_tokens >= 0),
  output_tokens INTEGER CHECK (output_tokens >= 0),
  cost INTEGER CHECK (cost >= 0),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  expires_at INTEGER,
  execution INTEGER,
  node INTEGER,
  UNIQUE (organization_id, id),
  CHECK (node IS NULL OR execution IS NOT NULL),
  CHECK ((status = 'processing') = (boot IS NOT NULL)),
  CHECK ((status IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CHECK (status <> 'completed' OR (error IS NULL AND cost IS NOT NULL)),
  CHECK (expires_at IS NULL OR finished_at IS NOT NULL)
) STRICT;
CREATE INDEX jobs_due ON jobs (model_id, organization_id, rank) WHERE status = 'pending' AND not_before = 0;
CREATE INDEX jobs_delayed ON jobs (not_before) WHERE status = 'pending' AND not_before > 0;
CREATE INDEX jobs_start_by ON jobs (start_by) WHERE status = 'pending' AND attempt = 0 AND start_by IS NOT NULL;
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_processing ON jobs (boot) WHERE status = 'processing';
CREATE INDEX jobs_execution ON jobs (execution, node) WHERE execution IS NOT NULL;

CREATE TABLE job_inputs (
  number INTEGER NOT NULL PRIMARY KEY REFERENCES jobs (number),
  inputs TEXT NOT NULL
) STRICT;

CREATE TABLE job_results (
  number INTEGER NOT NULL PRIMARY KEY REFERENCES jobs (number),
  result TEXT,
  file TEXT,
  bytes INTEGER,
  CHECK ((result IS NULL) = (file IS NOT NULL AND bytes IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX job_results_file ON job_results (file) WHERE file IS NOT NULL;
CREATE TABLE erasable_results (file TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TRIGGER job_results_removed AFTER DELETE ON job_results WHEN OLD.file IS NOT NULL BEGIN
  INSERT INTO erasable_results (file) VALUES (OLD.file);
END;

CREATE TABLE job_logs (
  number INTEGER NOT NULL PRIMARY KEY REFERENCES jobs (number),
  lines TEXT NOT NULL CHECK (json_type(lines) = 'array')
) STRICT;

CREATE TABLE events (
  sequence INTEGER NOT NULL PRIMARY KEY,
  number INTEGER REFERENCES jobs (number),
  organization_id TEXT NOT NULL,
  type TEXT NOT NULL CHECK (type GLOB 'job.*' OR type GLOB 'workflow_execution.*'),
  attempt INTEGER NOT NULL,
  at INTEGER NOT NULL,
  execution INTEGER,
  node INTEGER,
  CHECK (number IS NOT NULL OR execution IS NOT NULL)
) STRICT;
CREATE INDEX events_execution ON events (execution) WHERE execution IS NOT NULL;
CREATE INDEX events_job ON events (number);
CREATE INDEX events_organization ON events (organization_id);
CREATE TABLE last_event (sequence INTEGER NOT NULL) STRICT;
INSERT INTO last_event VALUES (0);

CREATE TABLE job_counts (
  status TEXT NOT NULL PRIMARY KEY CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled')),
  jobs INTEGER NOT NULL CHECK (jobs >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO job_counts VALUES ('pending', 0), ('processing', 0), ('completed', 0), ('failed', 0), ('cancelled', 0);


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

CREATE TRIGGER jobs_end_once BEFORE UPDATE OF status ON jobs WHEN OLD.finished_at IS NOT NULL BEGIN
  SELECT RAISE(ABORT, 'a job that has ended does not change any more');
END;

CREATE TABLE idempotency_keys (
  number INTEGER NOT NULL PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  body_hash TEXT NOT NULL,
  job_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE replies (
  number INTEGER NOT NULL PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  body_hash TEXT NOT NULL,
  status INTEGER NOT NULL,
  body TEXT NOT NULL,
  job_id TEXT,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE files (
  id TEXT NOT NULL UNIQUE,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  purpose TEXT NOT NULL CHECK (purpose IN ('upload', 'input', 'output', 'thumbnail')),
  name TEXT NOT NULL,
  content_type TEXT NOT NULL,
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
  width INTEGER,
  height INTEGER,
  duration_ms INTEGER,
  job_id TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  removed_at INTEGER,
  erased INTEGER NOT NULL DEFAULT 0 CHECK (erased IN (0, 1)),
  CHECK (erased = 0 OR removed_at IS NOT NULL)
) STRICT;
CREATE INDEX files_listed ON files (organization_id, purpose, id) WHERE removed_at IS NULL;
CREATE INDEX files_job ON files (job_id) WHERE job_id IS NOT NULL AND removed_at IS NULL;
CREATE INDEX files_expiring ON files (expires_at) WHERE removed_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX files_removed ON files (removed_at) WHERE removed_at IS NOT NULL AND erased = 0;

CREATE TABLE library (
  number INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL REFERENCES files (id),
  job_id TEXT NOT NULL,
  task TEXT NOT NULL,
  model_id TEXT NOT NULL,
  prompt TEXT NOT NULL,
  folded TEXT NOT NULL,
  seed INTEGER NOT NULL,
  fps REAL NOT NULL,
  num_frames INTEGER NOT NULL,
  thumbnail_id TEXT,
  created_at INTEGER NOT NULL,
  UNIQUE (organization_id, id)
) STRICT;

CREATE TABLE ledger (
  sequence INTEGER NOT NULL PRIMARY KEY,
  job_id TEXT NOT NULL,
  organization_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('async', 'sync')),
  task TEXT NOT NULL,
  model_id TEXT NOT NULL,
  engine_id TEXT,
  status TEXT NOT NULL CHECK (status IN ('completed', 'failed', 'cancelled')),
  error TEXT,
  input_tokens INTEGER NOT NULL CHECK (input_tokens >= 0),
  output_tokens INTEGER NOT NULL CHECK (output_tokens >= 0),
  cost INTEGER NOT NULL CHECK (cost >= 0),
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER NOT NULL,
  hash BLOB NOT NULL CHECK (length(hash) = 32),
  UNIQUE (organization_id, kind, job_id)
) STRICT;
CREATE TRIGGER ledger_is_final BEFORE UPDATE ON ledger BEGIN
  SELECT RAISE(ABORT, 'the ledger is only added to');
END;
CREATE TRIGGER ledger_is_kept BEFORE DELETE ON ledger BEGIN
  SELECT RAISE(ABORT, 'the ledger is only added to');
END;
`
