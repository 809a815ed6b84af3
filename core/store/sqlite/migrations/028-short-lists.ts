/** `column` has one of `values`, at most two of them in each list. */
function oneOf(column: string, values: readonly string[]): string {
  const pairs = Array.from({ length: Math.ceil(values.length / 2) }, (_, at) => values.slice(2 * at, 2 * at + 2))
  return pairs.map(pair => longList(column, pair)).join(' OR ')
}
const longList = (column: string, values: readonly string[]): string =>
  `${column} IN (${values.map(value => `'${value}'`).join(', ')})`

/** Replaces a condition in the definition of a table by one that means the same. */
const replaced = (table: string, before: string, after: string): string =>
  `UPDATE sqlite_schema SET sql = replace(sql, '${before.replaceAll("'", "''")}', '${after.replaceAll("'", "''")}')
    WHERE type = 'table' AND name = '${table}';`
const shortened = (table: string, column: string, ...values: string[]): string =>
  replaced(table, `CHECK (${longList(column, values)})`, `CHECK (${oneOf(column, values)})`)

const awaited = ['items', 'approval', 'event', 'time', 'execution']

/**
 * Conditions with lists of at most two values, in tables that get rows with every call, job and node. SQLite compares with
 * two values; of a list of three or more it builds a temporary table for every row. That was a quarter of the insert of a
 * ledger row. The rows stay as they are, so a large ledger is not copied. Creating a table tells other connections that
 * the schema has changed, and RESET makes this one read it again.
 */
export const shortLists = `
PRAGMA writable_schema = ON;
${shortened('ledger', 'status', 'completed', 'failed', 'cancelled')}
${shortened('ledger', 'fallback_reason', 'failed', 'context', 'wait')}
${shortened('jobs', 'status', 'pending', 'processing', 'completed', 'failed', 'cancelled')}
${shortened('jobs', 'class', 'workflow', 'async', 'batch')}
${shortened('jobs', 'fallback_reason', 'failed', 'context', 'wait')}
${replaced('jobs', longList('awaits', awaited), `(${oneOf('awaits', awaited)})`)}
${replaced('jobs', longList('status', ['completed', 'failed', 'cancelled']), `status NOT IN ('pending', 'processing')`)}
${replaced(
  'execution_nodes',
  `CHECK (status IN
    ('pending', 'ready', 'completed', 'failed', 'skipped', 'cancelled', 'timed_out'))`,
  `CHECK (${oneOf('status', ['pending', 'ready', 'completed', 'failed', 'skipped', 'cancelled', 'timed_out'])})`,
)}
${shortened('execution_nodes', 'skip_reason', 'condition', 'skipped_node', 'failure')}
${shortened('execution_items', 'status', 'ready', 'completed', 'failed', 'cancelled')}
${shortened('batch_lines', 'status', 'running', 'completed', 'failed')}
CREATE TABLE changed (x INTEGER) STRICT;
DROP TABLE changed;
PRAGMA writable_schema = RESET;
`
