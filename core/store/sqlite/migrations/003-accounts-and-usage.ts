const newMeasures = ['cached_tokens', 'reasoning_tokens', 'images', 'video_ms', 'audio_ms', 'characters', 'documents']

const addMeasures = (table: string, rest: string): string =>
  [...newMeasures, 'gpu_ms', 'energy_mj']
    .map(name => `ALTER TABLE ${table} ADD COLUMN ${name} INTEGER ${rest} CHECK (${name} >= 0);`)
    .join('\n')

/**
 * Organizations get limits, a region and a share of their own, and the states suspended and deleted; plans are named in
 * the configuration. Users own tokens; tokens get limits, and know the first token of their rotations, whose spending
 * they continue. Administrative acts are recorded in the audit log.
 *
 * Every measure of a usage has its column. The new columns of the ledger are null in rows written before, whose hash
 * does not contain them: `gpu_ms` is null exactly in those.
 *
 * An event may belong to an organization alone: its subject is then in `data`. The table is made again, because a CHECK
 * cannot be changed.
 *
 * SQLite cannot change the CHECK of a column either: the old column is renamed, copied and dropped.
 */
export const accountsAndUsage = `
ALTER TABLE organizations RENAME COLUMN status TO old_status;
ALTER TABLE organizations ADD COLUMN status TEXT NOT NULL DEFAULT 'active'
  CHECK (status IN ('active', 'suspended', 'deleted'));
UPDATE organizations SET status = 'suspended' WHERE old_status = 'disabled';
ALTER TABLE organizations DROP COLUMN old_status;
ALTER TABLE organizations RENAME COLUMN plan TO old_plan;
ALTER TABLE organizations ADD COLUMN plan TEXT NOT NULL DEFAULT 'enterprise';
UPDATE organizations SET plan = old_plan;
ALTER TABLE organizations DROP COLUMN old_plan;
ALTER TABLE organizations ADD COLUMN concurrent_requests INTEGER CHECK (concurrent_requests >= 0);
ALTER TABLE organizations ADD COLUMN pending_jobs INTEGER CHECK (pending_jobs >= 0);
ALTER TABLE organizations ADD COLUMN stored_bytes INTEGER CHECK (stored_bytes >= 0);
ALTER TABLE organizations ADD COLUMN uploads_per_day INTEGER CHECK (uploads_per_day >= 0);
ALTER TABLE organizations ADD COLUMN monthly_spend_limit INTEGER CHECK (monthly_spend_limit >= 0);
ALTER TABLE organizations ADD COLUMN share INTEGER CHECK (share BETWEEN 1 AND 100);
ALTER TABLE organizations ADD COLUMN region TEXT;
ALTER TABLE organizations ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE organizations SET updated_at = created_at;

CREATE TABLE users (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  email TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  removed_at INTEGER,
  PRIMARY KEY (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX users_email ON users (organization_id, email) WHERE removed_at IS NULL;

ALTER TABLE tokens ADD COLUMN user_id TEXT REFERENCES users (id);
ALTER TABLE tokens ADD COLUMN origin_id TEXT;
ALTER TABLE tokens ADD COLUMN requests_per_minute INTEGER CHECK (requests_per_minute >= 0);
ALTER TABLE tokens ADD COLUMN jobs_per_minute INTEGER CHECK (jobs_per_minute >= 0);
ALTER TABLE tokens ADD COLUMN tokens_per_minute INTEGER CHECK (tokens_per_minute >= 0);
ALTER TABLE tokens ADD COLUMN concurrent_requests INTEGER CHECK (concurrent_requests >= 0);
ALTER TABLE tokens ADD COLUMN monthly_spend_limit INTEGER CHECK (monthly_spend_limit >= 0);
ALTER TABLE tokens ADD COLUMN allowed_hours TEXT CHECK (json_type(allowed_hours) = 'object');
ALTER TABLE tokens ADD COLUMN metadata TEXT CHECK (json_type(metadata) = 'object');
CREATE INDEX tokens_user ON tokens (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE audit_log (
  number INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL CHECK (actor IN ('token', 'command_line', 'server')),
  token_id TEXT,
  user_id TEXT,
  address TEXT,
  action TEXT NOT NULL,
  target_type TEXT NOT NULL,
  target_id TEXT NOT NULL,
  before TEXT CHECK (json_type(before) = 'object'),
  after TEXT CHECK (json_type(after) = 'object'),
  CHECK ((actor = 'token') = (token_id IS NOT NULL))
) STRICT;
CREATE INDEX audit_log_organization ON audit_log (organization_id);
CREATE TRIGGER audit_log_is_final BEFORE UPDATE ON audit_log BEGIN
  SELECT RAISE(ABORT, 'the audit log is only added to');
END;
CREATE TRIGGER audit_log_is_kept BEFORE DELETE ON audit_log BEGIN
  SELECT RAISE(ABORT, 'the audit log is only added to');
END;

${addMeasures('jobs', '')}
${addMeasures('executions', 'NOT NULL DEFAULT 0')}
${addMeasures('ledger', '')}

CREATE TABLE new_events (
  sequence INTEGER NOT NULL PRIMARY KEY,
  number INTEGER REFERENCES jobs (number),
  organization_id TEXT NOT NULL,
  type TEXT NOT NULL CHECK (type GLOB '*.*'),
  attempt INTEGER NOT NULL,
  at INTEGER NOT NULL,
  execution INTEGER,
  node INTEGER,
  data TEXT CHECK (json_type(data) = 'object'),
  CHECK (number IS NOT NULL OR execution IS NOT NULL OR data IS NOT NULL)
) STRICT;
INSERT INTO new_events SELECT sequence, number, organization_id, type, attempt, at, execution, node, NULL FROM events;
DROP TABLE events;
ALTER TABLE new_events RENAME TO events;
CREATE INDEX events_execution ON events (execution) WHERE execution IS NOT NULL;
CREATE INDEX events_job ON events (number);
CREATE INDEX events_organization ON events (organization_id);
`
