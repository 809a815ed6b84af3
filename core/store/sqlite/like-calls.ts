import { type LedgerColumn, type LedgerRows, ledgerColumns } from '../ledger-rows.ts'
import type { Connection } from './database.ts'

/** The columns that differ between calls of one caller for the same work; in most of them all other columns are equal. */
const ownColumns = [
  'job_id',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'cost',
  'created_at',
  'started_at',
  'finished_at',
  'gpu_ms',
  'energy_mj',
  'reference_queue_ms',
] as const satisfies LedgerColumn[]
const sharedColumns = ledgerColumns.filter(name => !(ownColumns as readonly string[]).includes(name))
const width = ledgerColumns.length
const ownPlaces = ownColumns.map(name => ledgerColumns.indexOf(name))
const sharedPlaces = sharedColumns.map(name => ledgerColumns.indexOf(name))

/** How many rows one statement inserts, the most first. */
const counts = [16, 4] as const
const shared = [...sharedColumns, 'user_id', 'workflow_id']
const own = [...ownColumns, 'sequence', 'hash']
const places = (names: readonly string[]) => names.map(() => '?').join(', ')

/** How many of the rows from `at` on one statement inserts, because their shared columns are equal; 1 if only the first. */
export function likeCalls(rows: LedgerRows, at: number): number {
  const most = Math.min(counts[0], (rows.length - at) / width)
  let alike = 1
  while (alike < most && isLike(rows, at, at + alike * width)) alike++
  return counts.find(count => count <= alike) ?? 1
}

function isLike(rows: LedgerRows, one: number, other: number): boolean {
  for (const place of sharedPlaces) if (rows[one + place] !== rows[other + place]) return false
  return true
}

/** What the writer adds to rows of one caller: the attribution of all, and of each its number and its hash in hexadecimal. */
export interface Chained {
  userId: string | null
  workflowId: string | null
  sequence: number
  hashes: readonly string[]
}

/**
 * Inserts as many like calls as there are hashes with one statement, which binds what they share once: that is half of
 * the time of a statement for each. Throws SqliteError and inserts none if one of them is recorded already.
 */
export function openLikeCalls(connection: Connection) {
  const insert = (count: number) =>
    connection.statement`INSERT INTO ledger (${[...shared, ...own].join(', ')})
      SELECT ${shared.map((_, at) => `shared.column${at + 1}`).join(', ')},
      ${own.map((name, at) => (name === 'hash' ? `unhex(own.column${at + 1})` : `own.column${at + 1}`)).join(', ')}
      FROM (VALUES (${places(shared)})) AS shared,
      (VALUES ${Array.from({ length: count }, () => `(${places(own)})`).join(', ')}) AS own`
  const statements = new Map(counts.map(count => [count as number, insert(count)]))

  return (rows: LedgerRows, at: number, { userId, workflowId, sequence, hashes }: Chained): void => {
    const values: LedgerRows = []
    for (const place of sharedPlaces) values.push(rows[at + place]!)
    values.push(userId, workflowId)
    for (let index = 0; index < hashes.length; index++) {
      const from = at + index * width
      for (const place of ownPlaces) values.push(rows[from + place]!)
      values.push(sequence + index, hashes[index]!)
    }
    statements.get(hashes.length)!.run(values)
  }
}
