import { ulid } from '../../ids.ts'
import { promptExcerpt, promptIn } from '../job-prompt.ts'
import type { Statements } from '../method-table.ts'
import { callRecord, type JobRecord } from '../store.ts'
import { fromJson, pageOf } from './columns.ts'
import type { Connection } from './database.ts'
import { type JobRow, jobColumns, jobOf, openBatchesOf, openParents } from './job-reads.ts'
import { type CallRow, callColumns, callOf } from './ledger.ts'
import { hasWords, searchWords } from './search-words.ts'

/**
 * How many jobs and calls one page scans before it returns a cursor. Metadata is JSON text that must be parsed, so
 * fewer rows are scanned for it; prompts are in the inputs, of which a page reads `characters` at most.
 */
const listScan = { rows: 1000, withMetadata: 500, characters: 163_840 }

/** The inputs above which no prompt is read, bytes: most of them are files, and the event loop would wait. */
const readableInputs = 8192
/** How far the time in an id may differ from the job's own creation time, milliseconds. */
const driftMs = 3_600_000

/** The lowest id of a job created in this millisecond. */
const idAt = (at: number): string => `job_${ulid(Math.min(Math.max(0, at), 2 ** 48 - 1)).slice(0, 10)}`

interface SearchedRow {
  number: number
  id: string
  metadata: string | null
  inputs: string | null
}

/** What is compared with the JSON texts of each row: values by name, and words of the prompt. */
interface Wanted {
  metadata: [string, string][]
  words: string[]
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
    connection.scalar<string>`SELECT ${id} FROM ${table} WHERE organization_id = :organizationId ${kind}
      AND ${id} < :before AND ${id} >= :to ORDER BY ${id} DESC LIMIT 1 OFFSET :skip`
  const matches = `(:status IS NULL OR status = :status) AND (:task IS NULL OR task = :task)
    AND (:modelId IS NULL OR model_id = :modelId) AND created_at > :createdAfter AND created_at < :createdBefore
    AND (:tokenId IS NULL OR token_id = :tokenId)
    AND (:userId IS NULL OR token_id IN (SELECT tokens.id FROM tokens WHERE user_id = :userId))`
  const jobFloor = bounds('jobs', 'id', '')
  const callFloor = bounds('ledger', 'job_id', `AND kind = 'sync'`)
  const jobs = connection.query<JobRow>`SELECT ${jobColumns} FROM jobs WHERE organization_id = :organizationId
    AND id < :before AND id >= :to AND ${matches} ORDER BY id DESC LIMIT :limit`
  const numbered = connection.query<JobRow>`SELECT ${jobColumns} FROM jobs WHERE number = ?`
  const described = connection.query<SearchedRow>`SELECT number, id, metadata, NULL AS inputs FROM jobs
    WHERE organization_id = :organizationId AND id < :before AND id >= :to AND metadata IS NOT NULL AND ${matches}
    ORDER BY id DESC`
  const prompted = connection.query<SearchedRow>`SELECT jobs.number, id, metadata, inputs
    FROM jobs CROSS JOIN job_inputs ON job_inputs.number = jobs.number
    WHERE organization_id = :organizationId AND id < :before AND id >= :to AND ${matches}
      AND octet_length(inputs) <= ${String(readableInputs)} ORDER BY id DESC`
  const calls = connection.query<CallRow>`SELECT ${callColumns} FROM ledger WHERE organization_id = :organizationId
    AND kind = 'sync' AND job_id < :before AND job_id >= :to AND ${matches} ORDER BY job_id DESC LIMIT :limit`

  // Items have a list of their own: there may be thousands.
  const ofExecution = connection.query<JobRow>`SELECT ${jobColumns} FROM jobs WHERE node IS NOT NULL AND item IS NULL AND execution =
    (SELECT number FROM executions WHERE organization_id = :organizationId AND id = :executionId) AND id < :before
    AND ${matches} ORDER BY id DESC`

  /** The jobs of a page, at most `limit`, and the id at which the search ended if that is before `to`. */
  function jobPage(query: object, { metadata, words }: Wanted, limit: number): { rows: JobRecord[]; end?: string } {
    if (metadata.length === 0 && words.length === 0) return { rows: jobs.all({ ...query, limit }).map(recordOf) }
    const found: number[] = []
    let characters = 0
    let end: string | undefined
    for (const { number, id, inputs, metadata: own } of (words.length > 0 ? prompted : described).iterate(query)) {
      if (hasMetadata(own, metadata) && (inputs === null || hasWords(promptIn(inputs) ?? '', words))) found.push(number)
      if (found.length === limit) break
      characters += inputs?.length ?? 0
      if (characters > scan.characters) {
        end = id
        break
      }
    }
    const rows = found.flatMap(number => numbered.all(number).map(recordOf))
    return end === undefined ? { rows } : { rows, end }
  }

  const inputsOf = connection.query<{ id: string; inputs: string | null; thumbnailId: string | null }>`SELECT id,
      (SELECT inputs FROM job_inputs WHERE job_inputs.number = jobs.number
        AND octet_length(inputs) <= ${String(readableInputs)}) AS inputs,
      (SELECT thumbnail_id FROM files INDEXED BY files_job CROSS JOIN library
        ON library.organization_id = files.organization_id AND library.id = files.id
        WHERE files.job_id = jobs.id AND files.organization_id = jobs.organization_id AND files.removed_at IS NULL AND thumbnail_id IS NOT NULL LIMIT 1) AS thumbnailId
    FROM jobs WHERE organization_id = ? AND id = ?`

  return {
    'jobs.excerpts': (organizationId, ids) =>
      ids.flatMap(id =>
        inputsOf.all(organizationId, id).map(({ inputs, thumbnailId }) => {
          const prompt = inputs === null ? null : promptIn(inputs)
          return { id, prompt: prompt === null ? null : promptExcerpt(prompt), thumbnailId }
        }),
      ),
    'jobs.list'(organizationId, filter) {
      const { limit, after = '~', kind, createdAfter = -1, createdBefore = Number.MAX_SAFE_INTEGER } = filter
      const { status = null, task = null, modelId = null, userId = null, tokenId = null } = filter
      const metadata = Object.entries(filter.metadata ?? {})
      const words = searchWords(filter.search ?? '')
      const isSearch = metadata.length > 0 || words.length > 0
      // Calls have neither metadata nor a prompt that is kept.
      const [withJobs, withCalls] = [kind !== 'sync', kind !== 'async' && !isSearch]
      const maxId = filter.createdBefore === undefined ? '~' : idAt(createdBefore + driftMs)
      const before = after < maxId ? after : maxId
      const minId = filter.createdAfter === undefined ? '' : idAt(createdAfter - driftMs)

      const wanted = { createdAfter, createdBefore, status, task, modelId, userId, tokenId }
      if (filter.executionId !== undefined) {
        const { executionId } = filter
        const found: JobRow[] = []
        // At most as many as an execution has nodes, so none is left out as too far back.
        if (withJobs)
          for (const row of ofExecution.iterate({ organizationId, before, ...wanted, executionId })) {
            if (hasMetadata(row.metadata, metadata)) found.push(row)
            if (found.length > limit) break
          }
        const { page, next } = pageOf(found, limit)
        return { jobs: page.map(recordOf), next: next?.id ?? null }
      }

      const skip = (isSearch ? scan.withMetadata : scan.rows) - 1
      const span = { organizationId, before, to: minId, skip }
      const floors = [withJobs && jobFloor.get(span), withCalls && callFloor.get(span)]
      const to = floors.reduce<string>((highest, floor) => (floor && floor > highest ? floor : highest), minId)

      const query = { organizationId, before, to, ...wanted }
      // One more than the limit shows whether there is a next page.
      const { rows: own, end = to } = withJobs ? jobPage(query, { metadata, words }, limit + 1) : { rows: [] }
      // If the page of jobs is full, older calls do not matter.
      const from = own.length > limit ? own.at(-1)!.id : to
      const called = withCalls
        ? calls.all({ ...query, to: from, limit: limit + 1 }).map(row => callRecord(callOf(row)))
        : []
      const both = [...own, ...called].sort((a, b) => (a.id < b.id ? 1 : -1))
      const { page, next } = pageOf(both, limit)
      return { jobs: page, next: next?.id ?? (end > minId ? end : null) }
    },
  } satisfies Statements
}

/** Whether the JSON text of an object has these values. */
export function hasMetadata(text: string | null, query: [string, string][]): boolean {
  const metadata: Record<string, unknown> = fromJson(text) ?? {}
  return query.every(([name, value]) => Object.hasOwn(metadata, name) && metadata[name] === value)
}
