/**
 * Batches: files whose lines become jobs. A line has a row once it has become a job or was refused, written in the
 * transaction of that job; its end is written in the transaction of the job's end. So the number of rows and the counters
 * of the batch always agree with its jobs, whatever stops the server. The rows are deleted after the batch has ended, when
 * its output files have everything. The ids of these files are chosen when the batch is created, so that a crash while
 * they are written makes none twice.
 */
export const batches = `
CREATE TABLE batches (
  number INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  input_file_id TEXT NOT NULL,
  completion_window TEXT NOT NULL,
  output_lifetime_ms INTEGER CHECK (output_lifetime_ms > 0),
  metadata TEXT CHECK (json_type(metadata) = 'object'),
  region TEXT,
  origin TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN
    ('validating', 'failed', 'in_progress', 'finalizing', 'completed', 'expired', 'cancelling', 'cancelled')),
  ending TEXT CHECK (ending IN ('completed', 'expired', 'cancelled')),
  model_id TEXT,
  faults TEXT CHECK (json_type(faults) = 'array'),
  output_file_id TEXT NOT NULL,
  error_file_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  in_progress_at INTEGER,
  finalizing_at INTEGER,
  cancelling_at INTEGER,
  finished_at INTEGER,
  total INTEGER NOT NULL DEFAULT 0 CHECK (total >= 0),
  completed INTEGER NOT NULL DEFAULT 0 CHECK (completed >= 0),
  failed INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
  fed INTEGER NOT NULL DEFAULT 0 CHECK (fed BETWEEN 0 AND total),
  next_line INTEGER NOT NULL DEFAULT 1,
  next_offset INTEGER NOT NULL DEFAULT 0,
  rest_error TEXT CHECK (json_type(rest_error) = 'object'),
  input_tokens INTEGER NOT NULL DEFAULT 0,
  cached_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_tokens INTEGER NOT NULL DEFAULT 0,
  has_lines INTEGER NOT NULL DEFAULT 0 CHECK (has_lines IN (0, 1)),
  UNIQUE (organization_id, id),
  CHECK (completed + failed <= total),
  CHECK ((status IN ('failed', 'completed', 'expired', 'cancelled')) = (finished_at IS NOT NULL))
) STRICT;
CREATE INDEX batches_unfinished ON batches (input_file_id) WHERE finished_at IS NULL;
CREATE INDEX batches_with_lines ON batches (number) WHERE has_lines = 1 AND finished_at IS NOT NULL;

CREATE TABLE batch_lines (
  batch INTEGER NOT NULL REFERENCES batches (number),
  line INTEGER NOT NULL CHECK (line > 0),
  job_id TEXT,
  status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
  error TEXT CHECK (json_type(error) = 'object'),
  PRIMARY KEY (batch, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_lines_running ON batch_lines (batch, job_id) WHERE status = 'running';

ALTER TABLE jobs ADD COLUMN batch INTEGER;
ALTER TABLE jobs ADD COLUMN batch_line INTEGER;
`
