/**
 * What is spent by calendar month in UTC: one row for each organization (`origin_id` is empty) and one for each token
 * with all that it was rotated to. The sums are those of the ledger, and change in the transaction that adds to it.
 * `warned_at` and `exceeded_at` are set when 80 % and 100 % of the limit are reached, once a month.
 *
 * `held` is what an unfinished job may still cost.
 */
export const spend = `
ALTER TABLE jobs ADD COLUMN held INTEGER NOT NULL DEFAULT 0
  CHECK (held >= 0 AND (held = 0 OR finished_at IS NULL));
CREATE INDEX jobs_held ON jobs (organization_id) WHERE held > 0;

CREATE TABLE spend (
  organization_id TEXT NOT NULL,
  origin_id TEXT NOT NULL,
  month INTEGER NOT NULL,
  spent INTEGER NOT NULL CHECK (spent >= 0),
  warned_at INTEGER,
  exceeded_at INTEGER,
  PRIMARY KEY (organization_id, origin_id, month)
) STRICT, WITHOUT ROWID;
CREATE INDEX spend_month ON spend (month);

INSERT INTO spend (organization_id, origin_id, month, spent)
SELECT organization_id, '', month, sum(cost) FROM (
  SELECT organization_id, cost, unixepoch(finished_at / 1000, 'unixepoch', 'start of month') * 1000 AS month FROM ledger
  WHERE cost > 0
) GROUP BY organization_id, month;
INSERT INTO spend (organization_id, origin_id, month, spent)
SELECT organization_id, origin_id, month, sum(cost) FROM (
  SELECT ledger.organization_id, coalesce(tokens.origin_id, ledger.token_id) AS origin_id, cost,
    unixepoch(finished_at / 1000, 'unixepoch', 'start of month') * 1000 AS month
  FROM ledger LEFT JOIN tokens ON tokens.id = ledger.token_id WHERE cost > 0
) GROUP BY organization_id, origin_id, month;
`
