import { type LedgerColumn, type LedgerRows, ledgerColumns } from '../ledger-rows.ts'
import { bucketStart, type UsageDimension } from '../usage-records.ts'
import type { Connection } from './database.ts'
import { usageColumnNames } from './usage-columns.ts'

/** The summed columns of `usage_hours`, `usage_days` and `usage_months`, in the order of their values. */
export const sumColumns = ['requests', 'jobs', 'failed', 'cost', 'queue_ms', 'run_ms', ...usageColumnNames] as const

/** What a row of the ledger adds to each of the columns. */
export const ledgerSums = [
  `kind = 'sync'`,
  `kind = 'async'`,
  `status = 'failed'`,
  'cost',
  'max(0, coalesce(started_at, finished_at) - created_at)',
  'max(0, finished_at - started_at)',
  ...usageColumnNames,
]

/** The dimensions of each series. */
export const detailDimensions = {
  full: ['model_id', 'task', 'token_id', 'user_id', 'workflow_id', 'status'],
  model: ['model_id', 'task', 'status'],
  token: ['token_id', 'user_id', 'status'],
} as const satisfies Record<string, readonly UsageDimension[]>
export type UsageDetail = keyof typeof detailDimensions

/** To whom work is attributed besides its token; null if to nobody. */
export interface Attribution {
  userId: string | null
  workflowId: string | null
}

/** A value of each dimension; '' without one. */
type Key = Record<UsageDimension, string>
interface Sums {
  organizationId: string
  key: Key
  /** The start of the hour, Unix seconds. */
  start: number
  /** The last end that was added, epoch milliseconds. */
  finishedAt: number
  /** Changed in place. */
  values: number[]
}
type Values = readonly number[]
/** What a token has spent, and when it last did, epoch milliseconds. */
export interface Spent {
  organizationId: string
  tokenId: string
  cost: number
  finishedAt: number
}

/** Sums by model, in the order of `sumColumns`. */
export type UsageByModel = ReadonlyMap<string, Values>
interface Row {
  series: number
  key: number
  start: number
  values: Values
}

/** Keys of which the ids are kept in memory: the active ones of most servers, in 2 MB. */
const maxKeys = 10_000
/** The largest sum that a double holds exactly. An engine that reports nonsense must not stop the writer. */
const most = Number.MAX_SAFE_INTEGER
const separator = '\u0000'

/** Adds up two lists of sums; none adds nothing. */
export const addUp = (values: readonly number[], more: readonly number[] | undefined): readonly number[] =>
  more === undefined ? values : values.map((value, at) => Math.min(most, value + more[at]!))

/** Where a column is in a row. */
const at = Object.fromEntries(ledgerColumns.map((name, place) => [name, place])) as Record<LedgerColumn, number>
const costAt = sumColumns.indexOf('cost')
const usageFrom = sumColumns.indexOf(usageColumnNames[0]!)
const usageAt = usageColumnNames.map(name => at[name as LedgerColumn])

/** Adds what a row has used, in the order of `sumColumns`. */
function addRowTo(sums: number[], row: LedgerRows): void {
  const [createdAt, finishedAt] = [row[at.created_at] as number, row[at.finished_at] as number]
  const startedAt = row[at.started_at] as number | null
  const add = (place: number, amount: number) => (sums[place] = Math.min(most, sums[place]! + amount))
  add(row[at.kind] === 'sync' ? 0 : 1, 1)
  if (row[at.status] === 'failed') add(2, 1)
  add(costAt, row[at.cost] as number)
  add(4, Math.max(0, (startedAt ?? finishedAt) - createdAt))
  if (startedAt !== null) add(5, Math.max(0, finishedAt - startedAt))
  for (let measure = 0; measure < usageAt.length; measure++) {
    const amount = row[usageAt[measure]!] as number | null
    if (amount !== null && amount !== 0) add(usageFrom + measure, amount)
  }
}

/**
 * Sums the rows of the ledger by hour, day and month, exact for each transaction. The rows of a transaction are added up
 * here and written once before its commit, so that a batch of calls costs a few statements. `billed` is called with each
 * sum that has a cost when it is written.
 */
export function openUsageTotals(connection: Connection, billed: (spent: Spent) => void = () => {}) {
  const user = connection.scalar<string | null>`SELECT user_id FROM tokens WHERE id = ?`
  const workflow = connection.scalar<string | null>`SELECT workflow_id FROM executions WHERE number = ?`
  const addSeries = connection.statement`INSERT INTO usage_series (organization_id, detail) VALUES (?, ?)`
  const findSeries = connection.scalar<number>`SELECT id FROM usage_series WHERE organization_id = ? AND detail = ?`
  const dimensions = detailDimensions.full
  const addKey = connection.statement`INSERT INTO usage_keys (series, ${dimensions.join(', ')})
    VALUES (?, ?, ?, ?, ?, ?, ?)`
  const findKey = connection.scalar<number>`SELECT id FROM usage_keys WHERE series = ?
    AND ${dimensions.map(name => `${name} = ?`).join(' AND ')}`
  const addTo = (table: string) =>
    connection.statement`INSERT INTO ${table} (series, start, key, ${sumColumns.join(', ')})
      VALUES (?, ?, ?, ${sumColumns.map(() => '?').join(', ')}) ON CONFLICT DO UPDATE
      SET ${sumColumns.map(name => `${name} = min(${name} + excluded.${name}, ${most})`).join(', ')}`
  const addHour = addTo('usage_hours')
  const addDay = addTo('usage_days')
  const addMonth = addTo('usage_months')
  const addRange = connection.statement`INSERT INTO ledger_hours (start, first_sequence, last_sequence) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET first_sequence = min(first_sequence, excluded.first_sequence),
    last_sequence = max(last_sequence, excluded.last_sequence)`

  let hours = new Map<string, Sums>()
  /** Those of the last row: most rows have the key of the one before. */
  let latest: Sums | undefined
  let ranges = new Map<number, readonly [first: number, last: number]>()
  // Of one transaction: another process may give a token to another user.
  const users = new Map<string, string | null>()
  const workflows = new Map<number, string | null>()
  const ids = new Map<string, { series: number; key: number }>()
  /** Written in this transaction, by model. */
  let written = new Map<string, Values>()

  function remembered<K>(map: Map<K, string | null>, key: K, read: (key: K) => string | null | undefined) {
    let value = map.get(key)
    if (value === undefined) map.set(key, (value = read(key) ?? null))
    return value
  }

  /** The id of a row with these values, which is added if there is none. */
  function idIn(find: typeof findKey, add: typeof addKey, ...values: (string | number)[]): number {
    return find.get(...values) ?? Number(add.run(...values).lastInsertRowid)
  }

  function idsOf(organizationId: string, detail: UsageDetail, key: Key): { series: number; key: number } {
    const own: readonly UsageDimension[] = detailDimensions[detail]
    const values = dimensions.map(name => (own.includes(name) ? key[name] : ''))
    const name = [organizationId, detail, ...values].join(separator)
    let found = ids.get(name)
    if (found) return found
    const series = idIn(findSeries, addSeries, organizationId, detail)
    const id = idIn(findKey, addKey, series, ...values)
    if (ids.size >= maxKeys) ids.clear()
    ids.set(name, (found = { series, key: id }))
    return found
  }

  function sumsOf(row: LedgerRows, { userId, workflowId }: Attribution): Sums {
    const organizationId = row[at.organization_id] as string
    const start = bucketStart((row[at.finished_at] as number) / 1000, '1h')
    const key = {
      model_id: row[at.model_id] as string,
      task: row[at.task] as string,
      token_id: row[at.token_id] as string,
      user_id: userId ?? '',
      workflow_id: workflowId ?? '',
      status: row[at.status] as string,
    }
    if (
      latest?.start === start &&
      latest.organizationId === organizationId &&
      dimensions.every(name => latest!.key[name] === key[name])
    )
      return latest
    const name = [organizationId, start, ...dimensions.map(dimension => key[dimension])].join(separator)
    let sums = hours.get(name)
    if (!sums) hours.set(name, (sums = { organizationId, key, start, finishedAt: 0, values: sumColumns.map(() => 0) }))
    return sums
  }

  function clear(): void {
    hours = new Map()
    latest = undefined
    ranges = new Map()
    users.clear()
    workflows.clear()
  }

  return {
    /** The user who owns the token now, and the workflow of the execution. */
    attributionOf: (tokenId: string, execution: number | null): Attribution => ({
      userId: remembered(users, tokenId, id => user.get(id)),
      workflowId: execution === null ? null : remembered(workflows, execution, number => workflow.get(number)),
    }),
    /** Adds a row of the ledger. */
    add(row: LedgerRows, owner: Attribution, sequence: number): void {
      latest = sumsOf(row, owner)
      latest.finishedAt = row[at.finished_at] as number
      addRowTo(latest.values, row)
      const { start } = latest
      const [first, last] = ranges.get(start) ?? [sequence, sequence]
      ranges.set(start, [Math.min(first, sequence), Math.max(last, sequence)])
    },
    mark(): () => void {
      const copied = Array.from(hours, ([name, sums]): [string, Sums] => [name, { ...sums, values: [...sums.values] }])
      const snapshot = { hours: new Map(copied), ranges: new Map(ranges), written: new Map(written) }
      return () => {
        clear()
        ids.clear()
        ;({ hours, ranges, written } = snapshot)
      }
    },
    write(): void {
      if (hours.size === 0) return
      const days = new Map<string, Row>()
      const months = new Map<string, Row>()
      const addRow = (rows: Map<string, Row>, ids: { series: number; key: number }, start: number, values: Values) => {
        const name = `${ids.key} ${start}`
        rows.set(name, { ...ids, start, values: addUp(values, rows.get(name)?.values) })
      }
      for (const { organizationId, key, start, finishedAt, values } of hours.values()) {
        const cost = values[costAt]!
        if (cost > 0) billed({ organizationId, tokenId: key.token_id, cost, finishedAt })
        written.set(key.model_id, addUp(values, written.get(key.model_id)))
        const full = idsOf(organizationId, 'full', key)
        addHour.run(full.series, start, full.key, ...values)
        const day = bucketStart(start, '1d')
        addRow(days, full, day, values)
        addRow(days, idsOf(organizationId, 'model', key), day, values)
        addRow(days, idsOf(organizationId, 'token', key), day, values)
        addRow(months, full, bucketStart(start, 'month'), values)
      }
      for (const { series, start, key, values } of days.values()) addDay.run(series, start, key, ...values)
      for (const { series, start, key, values } of months.values()) addMonth.run(series, start, key, ...values)
      for (const [start, [first, last]] of ranges) addRange.run(start, first, last)
      clear()
    },
    forget(): void {
      clear()
      ids.clear()
      written = new Map()
    },
    /** Returns what was written, by model, in the order of `sumColumns`. Call it after the commit. */
    take(): UsageByModel | undefined {
      if (written.size === 0) return undefined
      const taken = written
      written = new Map()
      return taken
    },
  }
}
export type UsageTotals = ReturnType<typeof openUsageTotals>
