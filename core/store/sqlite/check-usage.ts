import { detailDimensions, ledgerSums, sumColumns } from './usage-totals.ts'

const full = detailDimensions.full
const list = (names: readonly string[]): string => names.join(', ')
const sums = (values: readonly string[]): string =>
  values.map(value => `min(total(${value}), 9007199254740991)`).join(', ')

/** The sums of the ledger as the hours should have them. A row without a key has none in the hours. */
const ofLedger = `SELECT k.series, finished_at / 3600000 * 3600 AS start, k.id, ${sums(ledgerSums.map(value => value.replaceAll(/\bstatus\b/g, 'l.status')))}
  FROM ledger AS l LEFT JOIN usage_series AS s ON s.organization_id = l.organization_id AND s.detail = 'full'
    LEFT JOIN usage_keys AS k ON k.series = s.id AND k.model_id = l.model_id AND k.task = l.task
      AND k.token_id = l.token_id AND k.user_id = coalesce(l.user_id, '')
      AND k.workflow_id = coalesce(l.workflow_id, '') AND k.status = l.status
  GROUP BY 1, 2, 3`

const reals = list(sumColumns.map(name => `CAST(${name} AS REAL)`))
const ofHours = `SELECT series, start, key, ${reals} FROM usage_hours`

const stored = (table: string, detail: string): string => `usage_series AS s JOIN ${table} AS r ON r.series = s.id
  JOIN usage_keys AS k ON k.id = r.key AND k.series = s.id WHERE s.detail = '${detail}'`

const ofDays = (detail: keyof typeof detailDimensions): string => `SELECT organization_id, start,
    ${list(detailDimensions[detail])}, ${list(sumColumns.map(name => `CAST(${name} AS REAL)`))}
  FROM ${stored('usage_days', detail)}`

const summedHours = (detail: keyof typeof detailDimensions): string => {
  const names = detailDimensions[detail]
  return `SELECT organization_id, start / 86400 * 86400, ${list(names)}, ${sums(sumColumns)}
    FROM ${stored('usage_hours', 'full')} GROUP BY ${list(['organization_id', '2', ...names])}`
}

/** Rows that are in one of the two and not in the other. */
const differences = (one: string, other: string): string =>
  `SELECT (SELECT count(*) FROM (SELECT * FROM (${one}) EXCEPT SELECT * FROM (${other})))
     + (SELECT count(*) FROM (SELECT * FROM (${other}) EXCEPT SELECT * FROM (${one})))`

/** What must not be found in the sums of usage: queries that count rows, and the sentence for them. */
export const usageContradictions: readonly { sql: string; sentence: (rows: number) => string }[] = [
  {
    sql: differences(ofLedger, ofHours),
    sentence: rows => `${rows} hourly sums of usage do not match the ledger.`,
  },
  {
    sql: differences(
      `SELECT organization_id, unixepoch(start, 'unixepoch', 'start of month'), ${list(full)}, ${sums(sumColumns)}
        FROM ${stored('usage_hours', 'full')} GROUP BY ${list(['organization_id', '2', ...full])}`,
      `SELECT organization_id, start, ${list(full)}, ${list(sumColumns.map(name => `CAST(${name} AS REAL)`))}
        FROM ${stored('usage_months', 'full')}`,
    ),
    sentence: rows => `${rows} monthly sums of usage do not match the hourly ones.`,
  },
  ...(['full', 'model', 'token'] as const).map(detail => ({
    sql: differences(summedHours(detail), ofDays(detail)),
    sentence: (rows: number) => `${rows} daily sums of usage (${detail}) do not match the hourly ones.`,
  })),
  {
    sql: `SELECT count(*) FROM ledger AS l LEFT JOIN ledger_hours AS h ON h.start = l.finished_at / 3600000 * 3600
      WHERE h.start IS NULL OR l.sequence NOT BETWEEN first_sequence AND last_sequence`,
    sentence: rows => `${rows} rows of the ledger are not found by their hour.`,
  },
]
