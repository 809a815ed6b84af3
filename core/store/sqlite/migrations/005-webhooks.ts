/**
 * Webhooks: the webhook of a request is in the row of its job or execution, as JSON. Signing secrets are derived from
 * the master key: only the number of the current one is stored.
 *
 * A delivery is one message to one URL about one event, inserted in the transaction of the event, so that no crash loses
 * it. `target` is its endpoint, or the organization and host of a request's webhook. Of the deliveries with one target
 * and object only the first that has not ended has `waits = 0`: the others keep the order. Its body is in its own table,
 * because every attempt updates the row.
 */
export const webhooks = `
ALTER TABLE jobs ADD COLUMN webhook TEXT CHECK (json_type(webhook) = 'object');
CREATE INDEX jobs_webhook ON jobs (number) WHERE webhook IS NOT NULL;
ALTER TABLE executions ADD COLUMN webhook TEXT CHECK (json_type(webhook) = 'object');
CREATE INDEX executions_webhook ON executions (number) WHERE webhook IS NOT NULL;

CREATE TABLE webhook_endpoints (
  organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  event_types TEXT NOT NULL CHECK (json_type(event_types) = 'array'),
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  disabled_reason TEXT CHECK (disabled_reason = 'gone'),
  origin TEXT,
  secret_version INTEGER NOT NULL CHECK (secret_version >= 1),
  previous_until INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  CHECK (enabled = 0 OR disabled_reason IS NULL)
) STRICT;

-- The deliveries of a removed endpoint are removed later, a few at a time.
CREATE TABLE removed_webhook_endpoints (id TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TRIGGER webhook_endpoints_removed AFTER DELETE ON webhook_endpoints BEGIN
  INSERT INTO removed_webhook_endpoints (id) VALUES (OLD.id);
END;

CREATE TABLE webhook_secrets (
  organization_id TEXT NOT NULL PRIMARY KEY REFERENCES organizations (id) ON DELETE CASCADE,
  version INTEGER NOT NULL CHECK (version >= 1),
  previous_until INTEGER,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE webhook_deliveries (
  number INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  target TEXT NOT NULL,
  endpoint_id TEXT,
  url TEXT,
  form TEXT NOT NULL CHECK (form IN ('standard', 'fal')),
  origin TEXT,
  event INTEGER NOT NULL,
  type TEXT NOT NULL,
  object TEXT NOT NULL,
  subject TEXT NOT NULL CHECK (json_type(subject) = 'object'),
  at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('new', 'pending', 'delivered', 'dead')),
  waits INTEGER NOT NULL CHECK (waits IN (0, 1)),
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  next_at INTEGER NOT NULL,
  attempted_at INTEGER,
  finished_at INTEGER,
  status_code INTEGER,
  duration_ms INTEGER,
  error TEXT,
  response_body TEXT,
  CHECK ((endpoint_id IS NULL) = (url IS NOT NULL)),
  CHECK ((status IN ('delivered', 'dead')) = (finished_at IS NOT NULL))
) STRICT;
CREATE INDEX webhook_deliveries_order ON webhook_deliveries (target, object, number) WHERE finished_at IS NULL;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (target, next_at, number)
  WHERE status = 'pending' AND waits = 0;
CREATE INDEX webhook_deliveries_unfinished ON webhook_deliveries (at) WHERE finished_at IS NULL;
CREATE INDEX webhook_deliveries_new ON webhook_deliveries (number) WHERE status = 'new';
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (organization_id, number) WHERE status = 'dead';
CREATE INDEX webhook_deliveries_organization ON webhook_deliveries (organization_id, number);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (organization_id, number) WHERE finished_at IS NULL;
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id, number) WHERE endpoint_id IS NOT NULL;

CREATE TABLE webhook_bodies (
  number INTEGER NOT NULL PRIMARY KEY REFERENCES webhook_deliveries (number),
  body TEXT NOT NULL
) STRICT;
`
