import { ulid } from '../../ids.ts'
import { callRecord } from '../calls.ts'
import type { Statements } from '../method-table.ts'
import type { JobRecord } from '../store.ts'
import type { Connection } from './database.ts'
import { type JobRow, jobColumns, jobOf, openBatchesOf, openParents } from './job-reads.ts'
import { callOf, type LedgerRow } from './ledger.ts'

/**
 * How many jobs and calls one page scans before it returns a cursor. Metadata is JSON text that must be parsed, so
 * fewer rows are scanned for it.
 */
const listScan = { rows: 1000, withMetadata: 500 }
/** How far the time in an id may differ from the job's own creation time, milliseconds. */
const driftMs = 3_600_000

/** The lowest id of a job created in this millisecond. */
const idAt = (at: number): string => `job_${ulid(Math.min(Math.max(0, at), 2 ** 48 - 1)).slice(0, 10)}`

/** The part of the list from `before` (excluded) down to `to` (included), by id. */
interface Span {
  organizationId: string
  before: string
  to: string
}

/**
 * Lists jobs and synchronous calls together, newest first. Scans both by id, a bounded number of rows; the rows that
 * pass the filter are the page, and `next` is where the scan stopped.
 */
export function jobListReads(connection: Connection, scan = listScan) {
  const parentOf = openParents(connection)
  const batchOf = openBatchesOf(connection)
  const recordOf = (row: JobRow): JobRecord => jobOf(row, 'null', null, parentOf(row), batchOf(row))
  const bounds = (table: string, id: string, kind: string) =>
    connection
      .prepare<[Span & { skip: number }], string>(
        `SELECT ${id} FROM ${table} WHERE organization_id = :organizationId ${kind} AND ${id} < :before
           AND ${id} >= :to ORDER BY ${id} DESC LIMIT 1 OFFSET :skip`,
      )
      .pluck()
  const matches = `(:status IS NULL OR status = :status) AND (:task IS NULL OR task = :task)
    AND (:modelId IS NULL OR model_id = :modelId) AND created_at > :createdAfter AND created_at < :createdBefore
    AND (:tokenId IS NULL OR token_id = :tokenId)
    AND (:userId IS NULL OR token_id IN (SELECT tokens.id FROM tokens WHERE user_id = :userId))`
  const jobFloor = bounds('jobs', 'id', '')
  const callFloor = bounds('ledger', 'job_id', `AND kind = 'sync'`)
  const jobs = connection.prepare<[object], JobRow>(
    `SELECT ${jobColumns} FROM jobs WHERE organization_id = :organizationId AND id < :before AND id >= :to
       AND ${matches} ORDER BY id DESC LIMIT :limit`,
  )
  const numbered = connection.prepare<[number], JobRow>(`SELECT ${jobColumns} FROM jobs WHERE number = ?`)
  const described = connection.prepare<[object], { number: number; metadata: string }>(
    `SELECT number, metadata FROM jobs WHERE organization_id = :organizationId AND id < :before AND id >= :to
       AND metadata IS NOT NULL AND ${matches} ORDER BY id DESC`,
  )
  const calls = connection.prepare<[object], LedgerRow>(
    `SELECT * FROM ledger WHERE organization_id = :organizationId AND kind = 'sync' AND job_id < :before
       AND job_id >= :to AND ${matches} ORDER BY job_id DESC LIMIT :limit`,
  )

  const ofExecution = connection.prepare<[object], JobRow>(
    `SELECT ${jobColumns} FROM jobs WHERE node IS NOT NULL AND execution =
       (SELECT number FROM executions WHERE organization_id = :organizationId AND id = :executionId)
       AND id < :before AND ${matches} ORDER BY id DESC LIMIT :limit`,
  )

  function jobPage(query: object, metadata: [string, string][], limit: number): JobRecord[] {
    if (metadata.length === 0) return jobs.all({ ...query, limit }).map(recordOf)
    const found: number[] = []
    for (const row of described.iterate(query)) {
      if (hasMetadata(row.metadata, metadata)) found.push(row.number)
      if (found.length === limit) break
    }
    return found.flatMap(number => numbered.all(number).map(recordOf))
  }

  return {
    'jobs.list'(organizationId, filter) {
      const { limit, after = '~', kind, createdAfter = -1, createdBefore = Number.MAX_SAFE_INTEGER } = filter
      const metadata = Object.entries(filter.metadata ?? {})
      const [withJobs, withCalls] = [kind !== 'sync', kind !== 'async' && metadata.length === 0]
      const maxId = filter.createdBefore === undefined ? '~' : idAt(createdBefore + driftMs)
      const before = after < maxId ? after : maxId
      const minId = filter.createdAfter === undefined ? '' : idAt(createdAfter - driftMs)

      const span = {
        organizationId,
        before,
        to: minId,
        skip: (metadata.length > 0 ? scan.withMetadata : scan.rows) - 1,
      }
      const floors = [withJobs && jobFloor.get(span), withCalls && callFloor.get(span)]
      const to = floors.reduce<string>((highest, floor) => (floor && floor > highest ? floor : highest), minId)

      const query = {
        organizationId,
        before,
        to,
        createdAfter,
        createdBefore,
        status: filter.status ?? null,
        task: filter.task ?? null,
        modelId: filter.modelId ?? null,
        userId: filter.userId ?? null,
        tokenId: filter.tokenId ?? null,
      }
      if (filter.executionId !== undefined) {
        const { executionId } = filter
        const found = ofExecution.all({ ...query, executionId, limit: limit + 1 })
        return { jobs: found.slice(0, limit).map(recordOf), next: found.length > limit ? found[limit - 1]!.id : null }
      }
      // One more than the limit shows whether there is a next page.
      const own = withJobs ? jobPage(query, metadata, limit + 1) : []
      // If the page of jobs is full, older calls do not matter.
      const from = own.length > limit ? own.at(-1)!.id : to
      const called = withCalls
        ? calls.all({ ...query, to: from, limit: limit + 1 }).map(row => callRecord(callOf(row)))
        : []
      const both = [...own, ...called].sort((a, b) => (a.id < b.id ? 1 : -1))
      const page = both.slice(0, limit)
      if (both.length > limit) return { jobs: page, next: page.at(-1)!.id }
      return { jobs: page, next: to > minId ? to : null }
    },
  } satisfies Partial<Statements>
}

function hasMetadata(text: string, query: [string, string][]): boolean {
  const metadata = (JSON.parse(text) ?? {}) as Record<string, unknown>
  return query.every(([name, value]) => Object.hasOwn(metadata, name) && metadata[name] === value)
}
