const counters = [
  'requests',
  'jobs',
  'failed',
  'cost',
  'queue_ms',
  'run_ms',
  'input_tokens',
  'cached_tokens',
  'output_tokens',
  'reasoning_tokens',
  'images',
  'video_ms',
  'audio_ms',
  'characters',
  'documents',
  'gpu_ms',
  'energy_mj',
]

const table = (name: string): string => `
CREATE TABLE ${name} (
  series INTEGER NOT NULL REFERENCES usage_series (id),
  start INTEGER NOT NULL,
  key INTEGER NOT NULL REFERENCES usage_keys (id),
  ${counters.map(counter => `${counter} INTEGER NOT NULL CHECK (${counter} >= 0)`).join(',\n  ')},
  PRIMARY KEY (series, start, key)
) STRICT, WITHOUT ROWID;`

/** The largest sum: what a double holds exactly. */
const most = 9_007_199_254_740_991
const sum = (value: string): string => `CAST(min(total(${value}), ${most}) AS INTEGER)`

const ledgerSums = [
  `sum(kind = 'sync')`,
  `sum(kind = 'async')`,
  `sum(l.status = 'failed')`,
  sum('cost'),
  sum('max(0, coalesce(started_at, finished_at) - created_at)'),
  sum('max(0, finished_at - started_at)'),
  ...counters.slice(6).map(sum),
].join(', ')

/** Copies sums of full series from one table to a series of fewer dimensions. */
const coarser = (detail: string, dimensions: readonly string[]): string => `
INSERT INTO usage_series (organization_id, detail)
  SELECT organization_id, '${detail}' FROM usage_series WHERE detail = 'full';
INSERT INTO usage_keys (series, ${dimensions.join(', ')})
  SELECT DISTINCT c.id, ${dimensions.join(', ')} FROM usage_keys AS k JOIN usage_series AS f ON f.id = k.series
    JOIN usage_series AS c ON c.organization_id = f.organization_id AND c.detail = '${detail}'
  WHERE f.detail = 'full';
INSERT INTO usage_days
  SELECT c.id, d.start, n.id, ${counters.map(counter => sum(`d.${counter}`)).join(', ')}
  FROM usage_days AS d JOIN usage_series AS f ON f.id = d.series AND f.detail = 'full'
    JOIN usage_keys AS k ON k.id = d.key
    JOIN usage_series AS c ON c.organization_id = f.organization_id AND c.detail = '${detail}'
    JOIN usage_keys AS n ON n.series = c.id AND ${dimensions.map(name => `n.${name} = k.${name}`).join(' AND ')}
  GROUP BY 1, 2, 3;`

/**
 * Sums of the ledger by hour, day and month in UTC. A key names the dimensions of a row, so that a row is a few integers; '' is a
 * dimension without a value. A series is an organization in one detail: `full` has every dimension, `model` only model,
 * task and status, `token` only token, user and status; only the days have these two. A year by model then reads a
 * twentieth of the rows. Starts are
 * Unix seconds.
 *
 * `ledger_hours` has the first and the last row of the ledger that ended in each hour: usage by minute reads these,
 * without an index of the ledger that every request would have to keep.
 *
 * The ledger gets the user that owned the token, and the workflow. Older rows have neither.
 */
export const usageMigration = `
ALTER TABLE ledger ADD COLUMN user_id TEXT;
ALTER TABLE ledger ADD COLUMN workflow_id TEXT;

CREATE TABLE usage_series (
  id INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL,
  detail TEXT NOT NULL CHECK (detail IN ('full', 'model', 'token')),
  UNIQUE (organization_id, detail)
) STRICT;

CREATE TABLE usage_keys (
  id INTEGER NOT NULL PRIMARY KEY,
  series INTEGER NOT NULL REFERENCES usage_series (id),
  model_id TEXT NOT NULL DEFAULT '',
  task TEXT NOT NULL DEFAULT '',
  token_id TEXT NOT NULL DEFAULT '',
  user_id TEXT NOT NULL DEFAULT '',
  workflow_id TEXT NOT NULL DEFAULT '',
  status TEXT NOT NULL,
  UNIQUE (series, model_id, task, token_id, user_id, workflow_id, status)
) STRICT;
${table('usage_hours')}
${table('usage_days')}
${table('usage_months')}

CREATE TABLE ledger_hours (
  start INTEGER NOT NULL PRIMARY KEY,
  first_sequence INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL
) STRICT;

INSERT INTO ledger_hours
  SELECT finished_at / 3600000 * 3600, min(sequence), max(sequence) FROM ledger GROUP BY 1;
INSERT INTO usage_series (organization_id, detail) SELECT DISTINCT organization_id, 'full' FROM ledger;
INSERT INTO usage_keys (series, model_id, task, token_id, status)
  SELECT DISTINCT s.id, model_id, task, token_id, status FROM ledger JOIN usage_series AS s USING (organization_id);
INSERT INTO usage_hours
  SELECT k.series, finished_at / 3600000 * 3600, k.id, ${ledgerSums}
  FROM ledger AS l CROSS JOIN usage_series AS s ON s.organization_id = l.organization_id AND s.detail = 'full'
    CROSS JOIN usage_keys AS k ON k.series = s.id AND k.model_id = l.model_id AND k.task = l.task
      AND k.token_id = l.token_id AND k.user_id = '' AND k.workflow_id = '' AND k.status = l.status
  GROUP BY 1, 2, 3;
INSERT INTO usage_days
  SELECT series, start / 86400 * 86400, key, ${counters.map(sum).join(', ')} FROM usage_hours GROUP BY 1, 2, 3;
INSERT INTO usage_months
  SELECT series, unixepoch(start, 'unixepoch', 'start of month'), key, ${counters.map(sum).join(', ')}
  FROM usage_days GROUP BY 1, 2, 3;
${coarser('model', ['model_id', 'task', 'status'])}
${coarser('token', ['token_id', 'user_id', 'status'])}
`
