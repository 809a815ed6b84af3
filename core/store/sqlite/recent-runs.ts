import type { RecentRun } from '../job-records.ts'
import { type LedgerColumn, type LedgerRows, ledgerColumns } from '../ledger-rows.ts'
import type { Statements } from '../method-table.ts'
import type { Connection } from './database.ts'

/** How many runs of a task on a model are kept for an organization. */
const maxRecentRuns = 64
/** Of how many tasks and models the next place is kept in memory. */
const maxPlaces = 10_000

/** Where a column is in a row. */
const at = Object.fromEntries(ledgerColumns.map((name, place) => [name, place])) as Record<LedgerColumn, number>

interface Run extends RecentRun {
  organizationId: string
  modelId: string
  task: string
  finishedAt: number
}

/**
 * Keeps the last completed runs of each task on each model, for estimates. One run of each is written in a commit, so
 * that many calls at once cost as much as one.
 */
export function openRecentRuns(connection: Connection) {
  const lastPlace = connection.scalar<number>`SELECT place FROM recent_runs WHERE organization_id = ? AND model_id = ?
    AND task = ? ORDER BY at DESC, place DESC LIMIT 1`
  const put = connection.statement`INSERT OR REPLACE INTO recent_runs (organization_id, model_id, task, place, run_ms,
    cost, at) VALUES (?, ?, ?, ?, ?, ?, ?)`
  const places = new Map<string, number>()
  let runs = new Map<string, Run>()
  /** The name of the last run's work: most rows are of the same. */
  let latest: { organizationId: string; modelId: string; task: string; key: string } | undefined

  function keyOf(organizationId: string, modelId: string, task: string): string {
    if (latest?.organizationId !== organizationId || latest.modelId !== modelId || latest.task !== task)
      latest = { organizationId, modelId, task, key: [organizationId, modelId, task].join('\u0000') }
    return latest.key
  }

  function write({ organizationId, modelId, task, runMs, cost, finishedAt }: Run, key: string): void {
    const last = places.get(key) ?? lastPlace.get(organizationId, modelId, task) ?? -1
    const place = (last + 1) % maxRecentRuns
    put.run(organizationId, modelId, task, place, runMs, cost, finishedAt)
    if (places.size >= maxPlaces) places.clear()
    places.set(key, place)
  }

  return {
    /** Adds a row of the ledger. */
    add(row: LedgerRows): void {
      const startedAt = row[at.started_at] as number | null
      if (row[at.status] !== 'completed' || startedAt === null) return
      const finishedAt = row[at.finished_at] as number
      const organizationId = row[at.organization_id] as string
      const [modelId, task] = [row[at.model_id] as string, row[at.task] as string]
      const runMs = Math.max(0, finishedAt - startedAt)
      const run = { organizationId, modelId, task, runMs, cost: row[at.cost] as number, finishedAt }
      runs.set(keyOf(organizationId, modelId, task), run)
    },
    mark() {
      const snapshot = new Map(runs)
      return () => void (runs = snapshot)
    },
    write(): void {
      for (const [key, run] of runs) write(run, key)
      runs.clear()
    },
    forget(): void {
      runs.clear()
      places.clear()
    },
  }
}
export type RecentRuns = ReturnType<typeof openRecentRuns>

/** Reads of recent runs. */
export function recentRunReads(connection: Connection) {
  const ofWork = connection.query<RecentRun>`SELECT run_ms AS runMs, cost FROM recent_runs WHERE organization_id = ?
    AND model_id = ? AND task = ?`
  return {
    'jobs.recentRuns': (organizationId, { modelId, task }) => ofWork.all(organizationId, modelId, task),
  } satisfies Statements
}
