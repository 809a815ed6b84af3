/**
 * Idempotency keys in the order in which they arrived, without an index: `key_digests` finds them, up to the key
 * `last_indexed_key`. Digests are random, so an index that takes each at once changes a page for every key.
 */
export const keyDigests = `
CREATE TABLE arrived_keys (
  number INTEGER NOT NULL PRIMARY KEY,
  digest TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  job_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO arrived_keys SELECT number, digest, body_hash, job_id, created_at FROM idempotency_keys ORDER BY number;
DROP TABLE idempotency_keys;
ALTER TABLE arrived_keys RENAME TO idempotency_keys;

CREATE TABLE key_digests (
  digest TEXT NOT NULL PRIMARY KEY,
  number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO key_digests SELECT digest, number FROM idempotency_keys ORDER BY digest;

CREATE TABLE last_indexed_key (number INTEGER NOT NULL) STRICT;
INSERT INTO last_indexed_key SELECT coalesce(max(number), 0) FROM idempotency_keys;
`
