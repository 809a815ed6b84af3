import { conflict } from '../../failure.ts'
import { limitFailure } from '../limits.ts'
import type { Statements } from '../method-table.ts'
import { type FileRecord, filePurposes, type NewFile } from '../store.ts'
import { openInsert, selected } from './columns.ts'
import type { Connection } from './database.ts'
import type { WriteContext } from './write-context.ts'

const newFields = `id, organizationId, purpose, apiPurpose, name, contentType, bytes, sha256, width, height, durationMs,
  jobId, createdAt, expiresAt`
export const fileFields = `${newFields}, removedAt`
const select = `SELECT ${selected(fileFields)} FROM files`

/** How long a file that expires while its job is unfinished is kept at a time. */
const postponedMs = 3_600_000

/**
 * Writes the rows of files and the bytes that each organization has stored, inside the caller's transaction. Removing a
 * file also removes it from the library.
 */
export function openFileRows(connection: Connection) {
  const insert = openInsert(connection, 'files', newFields)
  const mark = connection.query<{ organization_id: string; bytes: number }>`UPDATE files SET removed_at = ? WHERE id = ?
    AND removed_at IS NULL RETURNING organization_id, bytes`
  const count = connection.statement`INSERT INTO stored_bytes VALUES (?, ?) ON CONFLICT (organization_id) DO UPDATE
    SET bytes = bytes + excluded.bytes`
  const uncount = connection.statement`UPDATE stored_bytes SET bytes = bytes - ? WHERE organization_id = ?`
  const entered = connection.scalar<string | null>`DELETE FROM library WHERE organization_id = ? AND id = ?
    RETURNING thumbnail_id`
  // Reusing the result would return URLs of files that no longer exist.
  const uncache = connection.statement`DELETE FROM cached_results WHERE job_id =
    (SELECT job_id FROM files WHERE id = ?)`
  const ofJob = connection.scalar<string>`SELECT id FROM files WHERE job_id = ? AND removed_at IS NULL
    AND organization_id = ?`

  /** Marks a file as removed, unless it is. */
  const markRemoved = (id: string, at: number): void => {
    const row = mark.get(at, id)
    if (row) uncount.run(row.bytes, row.organization_id)
  }

  const remove = (organizationId: string, id: string, at: number): void => {
    markRemoved(id, at)
    uncache.run(id)
    const thumbnail = entered.get(organizationId, id)
    if (thumbnail) markRemoved(thumbnail, at)
  }

  return {
    add(file: NewFile): void {
      insert(file)
      count.run(file.organizationId, file.bytes)
    },
    remove,
    removeOfJob(organizationId: string, jobId: string, at: number): void {
      for (const id of ofJob.all(jobId, organizationId)) remove(organizationId, id, at)
    },
  }
}

export function fileCommands(connection: Connection, { use, files, eachRow }: WriteContext) {
  const own = connection.query<FileRecord>`${select} WHERE id = ? AND organization_id = ?`
  const over = connection.query<FileRecord>`${select} WHERE removed_at IS NULL
    AND expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?`
  const ofApi = connection.query<FileRecord>`${select} WHERE id = ? AND organization_id = ? AND api_purpose IS NOT NULL
    AND removed_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`
  const needOf = openFileNeeds(connection)
  const postpone = connection.statement`UPDATE files SET expires_at = ? WHERE id = ?`
  const removed = connection.query<FileRecord>`${select} WHERE removed_at IS NOT NULL AND erased = 0 ORDER BY removed_at
    LIMIT ?`
  const erase = connection.statement`UPDATE files SET erased = 1 WHERE id = ? AND removed_at IS NOT NULL`

  return {
    'files.add'(file, limits) {
      const { organizationId, bytes, purpose } = file
      const reached = limits && use.forbidsFile(organizationId, { bytes, isUpload: purpose === 'upload' }, limits)
      if (reached) return limitFailure(reached)
      files.add(file)
      return { ...file, removedAt: null }
    },

    'files.requireRoom'(organizationId, file, limits) {
      const reached = use.forbidsFile(organizationId, file, limits)
      return reached && limitFailure(reached)
    },

    'files.remove'(organizationId, id, at) {
      if (!own.get(id, organizationId)) return undefined
      files.remove(organizationId, id, at)
      return own.get(id, organizationId)
    },

    'files.delete'(organizationId, id, at) {
      const row = ofApi.get(id, organizationId, at)
      if (!row) return undefined
      const neededBy = needOf(row)
      if (neededBy !== undefined)
        throw conflict(
          `The file ${id} cannot be deleted, because ${neededBy} needs it. Cancel that first, or wait for its end.`,
        )
      files.remove(organizationId, id, at)
      return own.get(id, organizationId)
    },

    /** Returns all removed files that still have bytes, including those of an interrupted sweep. */
    'files.expire'(now, limit) {
      eachRow(
        over.all(now, limit),
        row => {
          if (needOf(row)) postpone.run(now + postponedMs, row.id)
          else files.remove(row.organizationId, row.id, now)
        },
        row => postpone.run(null, row.id),
      )
      return removed.all(limit)
    },

    'files.erased'(ids) {
      for (const id of ids) erase.run(id)
    },
  } satisfies Statements
}

/** Reads of files; short statements on a read-only connection. */
export function fileReads(connection: Connection) {
  const one = connection.query<FileRecord>`${select} WHERE id = ?`
  const page = connection.query<FileRecord>`${select} WHERE organization_id = ? AND purpose = ? AND removed_at IS NULL
    AND id < ? ORDER BY id DESC LIMIT ?`
  const ofApi = (purpose: string, after: string, order: string) =>
    connection.query<FileRecord>`${select} WHERE organization_id = :organizationId AND removed_at IS NULL
      AND api_purpose ${purpose} AND (expires_at IS NULL OR expires_at > :now) AND id ${after} :after
      ORDER BY id ${order} LIMIT :limit`
  const pagesOfApi = {
    all: { asc: ofApi('IS NOT NULL', '>', 'ASC'), desc: ofApi('IS NOT NULL', '<', 'DESC') },
    one: { asc: ofApi('= :purpose', '>', 'ASC'), desc: ofApi('= :purpose', '<', 'DESC') },
  }
  return {
    'files.listOfApi'(organizationId, { limit, order, after, purpose, now }) {
      const page = pagesOfApi[purpose === undefined ? 'all' : 'one'][order]
      const start = after ?? (order === 'asc' ? '' : '~')
      const query = { organizationId, after: start, now, limit, ...(purpose === undefined ? {} : { purpose }) }
      return page.all(query)
    },
    'files.find': id => one.get(id),
    /** One index serves every purpose: without a purpose, the pages of all purposes are merged. */
    'files.list'(organizationId, query) {
      const purposes = query.purpose ? [query.purpose] : filePurposes
      return purposes
        .flatMap(purpose => page.all(organizationId, purpose, query.after ?? '~', query.limit))
        .sort((a, b) => (a.id < b.id ? 1 : -1))
        .slice(0, query.limit)
    },
  } satisfies Statements
}

/** Finds the unfinished work that needs a file. Such a file does not expire and cannot be deleted by a caller. */
function openFileNeeds(connection: Connection) {
  const unfinishedJob = connection.scalar<string>`SELECT id FROM jobs WHERE organization_id = ? AND id = ?
    AND finished_at IS NULL`

  const unfinishedBatch = connection.scalar<string>`SELECT id FROM batches WHERE input_file_id = ?
    AND organization_id = ? AND finished_at IS NULL`

  /** Returns what needs the file, as part of a sentence: `the job job_…`; undefined if nothing does. */
  return ({ id, organizationId, jobId }: FileRecord): string | undefined => {
    const job = unfinishedJob.get(organizationId, jobId)
    if (job !== undefined) return `the job ${job}`
    const batch = unfinishedBatch.get(id, organizationId)
    return batch === undefined ? undefined : `the batch ${batch}`
  }
}
