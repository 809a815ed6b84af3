import { Failure } from '../../failure.ts'
import { limitFailure } from '../limits.ts'
import type { Statements } from '../method-table.ts'
import { type ApiPurpose, type FilePurpose, type FileRecord, filePurposes, type NewFile } from '../store.ts'
import { type Connection, scalar } from './database.ts'
import type { WriteContext } from './write-context.ts'

export interface FileRow {
  id: string
  organization_id: string
  purpose: FilePurpose
  api_purpose: ApiPurpose | null
  name: string
  content_type: string
  bytes: number
  sha256: string
  width: number | null
  height: number | null
  duration_ms: number | null
  job_id: string | null
  created_at: number
  expires_at: number | null
  removed_at: number | null
}

export const fileOf = (row: FileRow): FileRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  purpose: row.purpose,
  apiPurpose: row.api_purpose,
  name: row.name,
  contentType: row.content_type,
  bytes: row.bytes,
  sha256: row.sha256,
  width: row.width,
  height: row.height,
  durationMs: row.duration_ms,
  jobId: row.job_id,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  removedAt: row.removed_at,
})

/** How long a file that expires while its job is unfinished is kept at a time. */
const postponedMs = 3_600_000

/**
 * Writes the rows of files and the bytes that each organization has stored, inside the caller's transaction. Removing a
 * file also removes it from the library.
 */
export function openFileRows(connection: Connection) {
  const insert = connection.prepare(
    `INSERT INTO files (id, organization_id, purpose, api_purpose, name, content_type, bytes, sha256, width, height,
       duration_ms, job_id, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const mark = connection.prepare<[number, string], { organization_id: string; bytes: number }>(
    'UPDATE files SET removed_at = ? WHERE id = ? AND removed_at IS NULL RETURNING organization_id, bytes',
  )
  const count = connection.prepare(
    `INSERT INTO stored_bytes VALUES (?, ?)
     ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes`,
  )
  const uncount = connection.prepare('UPDATE stored_bytes SET bytes = bytes - ? WHERE organization_id = ?')
  const entered = connection.prepare<[string, string], { thumbnail_id: string | null }>(
    'DELETE FROM library WHERE organization_id = ? AND id = ? RETURNING thumbnail_id',
  )
  // Reusing the result would return URLs of files that no longer exist.
  const uncache = connection.prepare(
    'DELETE FROM cached_results WHERE job_id = (SELECT job_id FROM files WHERE id = ?)',
  )
  const ofJob = connection.prepare<[string, string], { id: string }>(
    'SELECT id FROM files WHERE job_id = ? AND removed_at IS NULL AND organization_id = ?',
  )

  /** Marks a file as removed, unless it is. */
  const markRemoved = (id: string, at: number): void => {
    const row = mark.get(at, id)
    if (row) uncount.run(row.bytes, row.organization_id)
  }

  const remove = (organizationId: string, id: string, at: number): void => {
    markRemoved(id, at)
    uncache.run(id)
    const thumbnail = entered.get(organizationId, id)?.thumbnail_id
    if (thumbnail) markRemoved(thumbnail, at)
  }

  return {
    add(file: NewFile): void {
      insert.run(
        file.id,
        file.organizationId,
        file.purpose,
        file.apiPurpose,
        file.name,
        file.contentType,
        file.bytes,
        file.sha256,
        file.width,
        file.height,
        file.durationMs,
        file.jobId,
        file.createdAt,
        file.expiresAt,
      )
      count.run(file.organizationId, file.bytes)
    },
    remove,
    removeOfJob(organizationId: string, jobId: string, at: number): void {
      for (const { id } of ofJob.all(jobId, organizationId)) remove(organizationId, id, at)
    },
  }
}

export function fileCommands(connection: Connection, { use }: Pick<WriteContext, 'use'>) {
  const rows = openFileRows(connection)
  const own = connection.prepare<[string, string], FileRow>('SELECT * FROM files WHERE id = ? AND organization_id = ?')
  const over = connection.prepare<[number, number], FileRow>(
    `SELECT * FROM files WHERE removed_at IS NULL AND expires_at IS NOT NULL AND expires_at <= ?
     ORDER BY expires_at LIMIT ?`,
  )
  const ofApi = connection.prepare<[string, string, number], FileRow>(
    `SELECT * FROM files WHERE id = ? AND organization_id = ? AND api_purpose IS NOT NULL AND removed_at IS NULL
       AND (expires_at IS NULL OR expires_at > ?)`,
  )
  const needs = openFileNeeds(connection)
  const postpone = connection.prepare('UPDATE files SET expires_at = ? WHERE id = ?')
  const removed = connection.prepare<[number], FileRow>(
    'SELECT * FROM files WHERE removed_at IS NOT NULL AND erased = 0 ORDER BY removed_at LIMIT ?',
  )
  const erase = connection.prepare('UPDATE files SET erased = 1 WHERE id = ? AND removed_at IS NOT NULL')

  return {
    'files.add'(file, limits) {
      const { organizationId, bytes, purpose } = file
      const reached = limits && use.forbidsFile(organizationId, { bytes, isUpload: purpose === 'upload' }, limits)
      if (reached) return limitFailure(reached)
      rows.add(file)
      return { ...file, removedAt: null }
    },

    'files.requireRoom'(organizationId, file, limits) {
      const reached = use.forbidsFile(organizationId, file, limits)
      return reached && limitFailure(reached)
    },

    'files.remove'(organizationId, id, at) {
      if (!own.get(id, organizationId)) return undefined
      rows.remove(organizationId, id, at)
      return fileOf(own.get(id, organizationId)!)
    },

    'files.delete'(organizationId, id, at) {
      const row = ofApi.get(id, organizationId, at)
      if (!row) return undefined
      const neededBy = needs.of(row)
      if (neededBy !== undefined)
        throw new Failure(
          'conflict',
          `The file ${id} cannot be deleted, because ${neededBy} needs it. Cancel that first, or wait for its end.`,
        )
      rows.remove(organizationId, id, at)
      return fileOf(own.get(id, organizationId)!)
    },

    /** Returns all removed files that still have bytes, including those of an interrupted sweep. */
    'files.expire'(now, limit) {
      for (const row of over.all(now, limit))
        if (needs.of(row)) postpone.run(now + postponedMs, row.id)
        else rows.remove(row.organization_id, row.id, now)
      return removed.all(limit).map(fileOf)
    },

    'files.erased'(ids) {
      for (const id of ids) erase.run(id)
    },
  } satisfies Partial<Statements>
}

/** Reads of files; short statements on a read-only connection. */
export function fileReads(connection: Connection) {
  const one = connection.prepare<[string], FileRow>('SELECT * FROM files WHERE id = ?')
  const page = connection.prepare<[string, FilePurpose, string, number], FileRow>(
    `SELECT * FROM files WHERE organization_id = ? AND purpose = ? AND removed_at IS NULL AND id < ?
     ORDER BY id DESC LIMIT ?`,
  )
  const ofApi = (purpose: string, after: string, order: string) =>
    connection.prepare<
      { organizationId: string; purpose?: string; after: string; now: number; limit: number },
      FileRow
    >(
      `SELECT * FROM files WHERE organization_id = :organizationId AND removed_at IS NULL AND api_purpose ${purpose}
         AND (expires_at IS NULL OR expires_at > :now) AND id ${after} :after ORDER BY id ${order} LIMIT :limit`,
    )
  const pagesOfApi = {
    all: { asc: ofApi('IS NOT NULL', '>', 'ASC'), desc: ofApi('IS NOT NULL', '<', 'DESC') },
    one: { asc: ofApi('= :purpose', '>', 'ASC'), desc: ofApi('= :purpose', '<', 'DESC') },
  }
  return {
    'files.listOfApi'(organizationId, { limit, order, after, purpose, now }) {
      const page = pagesOfApi[purpose === undefined ? 'all' : 'one'][order]
      const start = after ?? (order === 'asc' ? '' : '~')
      const query = { organizationId, after: start, now, limit, ...(purpose === undefined ? {} : { purpose }) }
      return page.all(query).map(fileOf)
    },
    'files.find'(id) {
      const row = one.get(id)
      return row && fileOf(row)
    },
    /** One index serves every purpose: without a purpose, the pages of all purposes are merged. */
    'files.list'(organizationId, query) {
      const purposes = query.purpose ? [query.purpose] : filePurposes
      return purposes
        .flatMap(purpose => page.all(organizationId, purpose, query.after ?? '~', query.limit))
        .sort((a, b) => (a.id < b.id ? 1 : -1))
        .slice(0, query.limit)
        .map(fileOf)
    },
  } satisfies Partial<Statements>
}

/** Finds the unfinished work that needs a file. Such a file does not expire and cannot be deleted by a caller. */
function openFileNeeds(connection: Connection) {
  const unfinishedJob = scalar<[string, string | null], string>(
    connection,
    'SELECT id FROM jobs WHERE organization_id = ? AND id = ? AND finished_at IS NULL',
  )

  const unfinishedBatch = scalar<[string, string], string>(
    connection,
    'SELECT id FROM batches WHERE input_file_id = ? AND organization_id = ? AND finished_at IS NULL',
  )

  return {
    /** Returns what needs the file, as part of a sentence: `the job job_…`; undefined if nothing does. */
    of(file: Pick<FileRow, 'id' | 'organization_id' | 'job_id'>): string | undefined {
      const job = unfinishedJob.get(file.organization_id, file.job_id)
      if (job !== undefined) return `the job ${job}`
      const batch = unfinishedBatch.get(file.id, file.organization_id)
      return batch === undefined ? undefined : `the batch ${batch}`
    },
  }
}
