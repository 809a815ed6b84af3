import type { Connection } from './database.ts'
import type { FileRow } from './files.ts'

/** Finds the unfinished work that needs a file. Such a file does not expire and cannot be deleted by a caller. */
export function openFileNeeds(connection: Connection) {
  const unfinishedJob = connection
    .prepare<[string, string | null], string>(
      'SELECT id FROM jobs WHERE organization_id = ? AND id = ? AND finished_at IS NULL',
    )
    .pluck()

  return {
    /** Returns what needs the file, as part of a sentence: `the job job_…`; undefined if nothing does. */
    of(file: Pick<FileRow, 'id' | 'organization_id' | 'job_id'>): string | undefined {
      const job = unfinishedJob.get(file.organization_id, file.job_id)
      return job === undefined ? undefined : `the job ${job}`
    },
  }
}
