import type { Connection } from './database.ts'
import type { FileRow } from './files.ts'

/** Finds the unfinished work that needs a file. Such a file does not expire and cannot be deleted by a caller. */
export function openFileNeeds(connection: Connection) {
  const unfinishedJob = connection
    .prepare<[string, string | null], string>(
      'SELECT id FROM jobs WHERE organization_id = ? AND id = ? AND finished_at IS NULL',
    )
    .pluck()

  const unfinishedBatch = connection
    .prepare<[string, string], string>(
      'SELECT id FROM batches WHERE input_file_id = ? AND organization_id = ? AND finished_at IS NULL',
    )
    .pluck()

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
