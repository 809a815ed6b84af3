/** Responses that are kept so that they can be read and continued. */
export const responses = `
CREATE TABLE responses (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  previous_id TEXT,
  job_id TEXT,
  request TEXT NOT NULL,
  input TEXT NOT NULL,
  answer TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (organization_id, id),
  CHECK ((job_id IS NULL) = (answer IS NOT NULL))
) STRICT;
CREATE INDEX responses_expiring ON responses (expires_at) WHERE expires_at IS NOT NULL;
`
