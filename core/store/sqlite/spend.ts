import { monthOf } from '../../month.ts'
import { fallbackOrigin } from '../fallback-spend.ts'
import { type LedgerRows, ledgerColumns } from '../ledger-rows.ts'
import type { Statements } from '../method-table.ts'
import type { FallbackHold, HeldJob, SpendRecord } from '../spend-records.ts'
import type { Connection } from './database.ts'
import type { Events } from './events.ts'
import { openParentLimits } from './tokens.ts'
import type { Spent } from './usage-totals.ts'

interface SpendRow {
  spent: number
  warned_at: number | null
  exceeded_at: number | null
}

interface Spender {
  organizationId: string
  /** Empty for the whole organization. */
  originId: string
  limit: number | null
  /** What an event says of it. */
  subject: object
}

/** Part of a limit at which an event warns. */
const warnAt = 0.8

/**
 * Adds up what is spent by organization, token and month, in the transaction of the ledger row, and records the events
 * of limits that are reached in the same transaction. The sums of a transaction are written once before its commit.
 */
export function openSpendRows(connection: Connection, events: Events) {
  const add = connection.query<SpendRow>`INSERT INTO spend (organization_id, origin_id, month, spent, spent_below)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT (organization_id, origin_id, month) DO UPDATE
    SET spent = min(spent + excluded.spent, 9007199254740991),
      spent_below = min(spent_below + excluded.spent_below, 9007199254740991)
    RETURNING spent + spent_below AS spent, warned_at, exceeded_at`
  const announced = connection.statement`UPDATE spend
    SET warned_at = ?, exceeded_at = ? WHERE organization_id = ? AND origin_id = ? AND month = ?`
  const organizationOf = connection.query<{ plan: string; limit: number | null }>`SELECT plan,
    monthly_spend_limit AS "limit" FROM organizations WHERE id = ?`
  const tokenOf = connection.query<{ origin: string; name: string; limit: number | null; parent: string | null }>`
    SELECT coalesce(origin_id, id) AS origin, name, monthly_spend_limit AS "limit", limits_parent AS parent
    FROM tokens WHERE id = ?`
  const parentLimits = openParentLimits(connection)
  let added: Spent[] = []
  let planLimits: Readonly<Record<string, number>> = {}

  /** `below`: a token that this one created has spent it. */
  function spend({ organizationId, originId, limit, subject }: Spender, cost: number, at: number, below = false): void {
    const { start, end } = monthOf(at)
    const costs = below ? [0, cost] : [cost, 0]
    const { spent, warned_at, exceeded_at } = add.get(organizationId, originId, start, ...costs)!
    if (limit === null) return
    const warns = warned_at === null && spent >= limit * warnAt
    const exceeds = exceeded_at === null && spent >= limit
    if (!warns && !exceeds) return
    announced.run(warned_at ?? at, exceeds ? at : exceeded_at, organizationId, originId, start)
    const data = {
      ...subject,
      spend_limit: limit / 1e6,
      spent: spent / 1e6,
      period_start: start / 1000,
      period_end: end / 1000,
    }
    if (warns) events.addOfOrganization(organizationId, 'quota.warning', { ...data, percent: 80 }, at)
    if (exceeds) events.addOfOrganization(organizationId, 'quota.exceeded', { ...data, percent: 100 }, at)
  }

  return {
    /** Counts a cost of ledger rows of this transaction. */
    billed(spent: Spent): void {
      added.push(spent)
    },
    limitPlans(limits: Readonly<Record<string, number>>): void {
      planLimits = limits
    },
    mark(): () => void {
      const { length } = added
      return () => {
        added.length = length
      }
    },
    /** Call it in the transaction, after the sums of usage and before the events are written. */
    write(): void {
      const sums = new Map<string, Spent>()
      for (const job of added) {
        const key = `${job.organizationId} ${job.tokenId} ${monthOf(job.finishedAt).start}`
        const sum = sums.get(key)
        sums.set(key, sum ? { ...job, cost: sum.cost + job.cost } : job)
      }
      added = []
      for (const { organizationId, tokenId, cost, finishedAt } of sums.values()) {
        const organization = organizationOf.get(organizationId)
        const token = tokenOf.get(tokenId)
        const limit = organization?.limit ?? planLimits[organization?.plan ?? ''] ?? null
        spend({ organizationId, originId: '', limit, subject: { of: 'organization' } }, cost, finishedAt)
        const subject = { of: 'token', token_id: tokenId, token_name: token?.name ?? null }
        const originId = token?.origin ?? tokenId
        spend({ organizationId, originId, limit: token?.limit ?? null, subject }, cost, finishedAt)
        for (const { originId, tokenId, tokenName, monthlySpendLimit: limit } of parentLimits(token?.parent ?? null)) {
          const subject = { of: 'token', token_id: tokenId, token_name: tokenName }
          spend({ organizationId, originId, limit, subject }, cost, finishedAt, true)
        }
      }
    },
    forget(): void {
      added = []
    },
  }
}
export type SpendRows = ReturnType<typeof openSpendRows>

const at = (column: (typeof ledgerColumns)[number]): number => ledgerColumns.indexOf(column)
const places = {
  organizationId: at('organization_id'),
  modelId: at('model_id'),
  cost: at('cost'),
  finishedAt: at('finished_at'),
  fallbackReason: at('fallback_reason'),
  id: at('job_id'),
}

/** Adds the cost of a new ledger row to what its organization has spent on its model as a fallback, if it is of one. */
export function openFallbackSpend(connection: Connection) {
  const add = connection.statement`INSERT INTO spend (organization_id, origin_id, month, spent) VALUES (?, ?, ?, ?)
    ON CONFLICT (organization_id, origin_id, month) DO UPDATE SET spent = min(spent + excluded.spent, 9007199254740991)`
  const drop = connection.statement`DELETE FROM fallback_holds WHERE id = ?`
  return (row: LedgerRows): void => {
    const cost = row[places.cost] as number
    if (row[places.fallbackReason] === null) return
    drop.run(row[places.id])
    if (cost <= 0) return
    const { start } = monthOf(row[places.finishedAt] as number)
    add.run(row[places.organizationId], fallbackOrigin(row[places.modelId] as string), start, cost)
  }
}

/**
 * Counts as spent on fallbacks what calls held, and jobs hold that were running, when an earlier boot was killed: the other
 * side may have billed it. A limit of a fallback is so never exceeded; no bill has it.
 */
export function countInterruptedFallbacks(connection: Connection, boot: string, at: number): void {
  const count = connection.statement`INSERT INTO spend (organization_id, origin_id, month, spent)
    SELECT organization_id, '${fallbackOrigin('')}' || model_id, ?, sum(held) FROM (
      SELECT organization_id, model_id, held FROM fallback_holds
      UNION ALL SELECT organization_id, model_id, held FROM jobs
        WHERE status = 'processing' AND boot <> ? AND fallback_reason IS NOT NULL AND held > 0)
    GROUP BY 1, 2
    ON CONFLICT (organization_id, origin_id, month) DO UPDATE SET spent = min(spent + excluded.spent, 9007199254740991)`
  const forget = connection.statement`DELETE FROM fallback_holds`
  connection
    .transaction(() => {
      count.run(monthOf(at).start, boot)
      forget.run()
    })
    .immediate()
}

/** The writer's commands about spending. */
export function spendCommands(connection: Connection, { spend }: { spend: Pick<SpendRows, 'limitPlans'> }) {
  const hold = connection.statement`INSERT OR REPLACE INTO fallback_holds (id, organization_id, model_id, held)
    VALUES (?, ?, ?, ?)`
  const drop = connection.statement`DELETE FROM fallback_holds WHERE id = ?`
  return {
    'spend.limitPlans': spend.limitPlans,
    'spend.holdFallback'({ id, organizationId, modelId, held }: FallbackHold): void {
      hold.run(id, organizationId, modelId, held)
    },
    'spend.dropFallback'(id: string): void {
      drop.run(id)
    },
  } satisfies Statements
}

interface HeldRow extends Omit<HeldJob, 'parentIds' | 'fallbackModelId'> {
  parent: string | null
  /** The model that does the job as a fallback. */
  fallback: string | null
}

/** Reads of what is spent and held. Both read all rows of their index: call them only at the start. */
export function spendReads(connection: Connection) {
  const spent = connection.query<SpendRecord>`SELECT organization_id AS organizationId,
    nullif(origin_id, '') AS originId, month, spent + spent_below AS spent FROM spend WHERE month >= ?`
  const held = connection.query<HeldRow>`SELECT jobs.id,
    jobs.organization_id AS organizationId, coalesce(tokens.origin_id, token_id) AS originId, held,
    limits_parent AS parent, iif(fallback_reason IS NULL, NULL, model_id) AS fallback FROM jobs LEFT JOIN tokens ON tokens.id = token_id WHERE held > 0`
  const parentLimits = openParentLimits(connection)
  return {
    'spend.read': fromMonth => spent.all(fromMonth),
    'spend.held'() {
      const known = new Map<string | null, string[]>()
      return held.all().map(({ parent, fallback, ...job }) => {
        const parentIds = known.get(parent) ?? parentLimits(parent).map(({ originId }) => originId)
        known.set(parent, parentIds)
        return { ...job, parentIds, fallbackModelId: fallback }
      })
    },
  } satisfies Statements
}

const sum = (table: string, column: string, where: string) =>
  `SELECT ${table}.organization_id, ${column} AS month, sum(${table === 'spend' ? 'spent' : 'cost'}) AS total
   FROM ${table} WHERE ${where} GROUP BY 1, 2`
const different = (one: string, other: string) =>
  `SELECT count(*) FROM (${one}) AS a FULL JOIN (${other}) AS b USING (organization_id, month)
   WHERE a.total IS NOT b.total`
const ofOrganizations = sum('spend', 'month', "origin_id = ''")

/** What must not be found in the sums of what was spent, for a database check. */
export const spendContradictions = {
  'The spending of # months of organizations is not the sum of the ledger.': different(
    sum('ledger', `unixepoch(finished_at / 1000, 'unixepoch', 'start of month') * 1000`, 'cost > 0'),
    ofOrganizations,
  ),
  'The spending of tokens is not that of their organization in # months.': different(
    ofOrganizations,
    sum('spend', 'month', `origin_id <> '' AND origin_id NOT GLOB '${fallbackOrigin('*')}'`),
  ),
}
