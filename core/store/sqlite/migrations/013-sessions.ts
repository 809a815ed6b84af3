/** Sessions of the web console. The id is not stored: only its digest. */
export const sessions = `
CREATE TABLE sessions (
  digest BLOB PRIMARY KEY,
  token_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_of_token ON sessions (token_id, created_at);
CREATE INDEX sessions_expiring ON sessions (expires_at);
`
