import type { JobLimits, LimitReached, OrganizationUse, StorageLimits } from '../store.ts'
import type { Connection } from './database.ts'
import type { JobCounts } from './job-counts.ts'

/** What organizations use of their limits, exact for each transaction: the writer asks before it adds a row. */
export function openOrganizationUse(connection: Connection, jobCounts: Pick<JobCounts, 'openOf'>) {
  const stored = connection.scalar<number>`SELECT bytes FROM stored_bytes WHERE organization_id = ?`
  const uploads = connection.scalar<number>`SELECT count(*) FROM files WHERE organization_id = ? AND created_at >= ?
    AND purpose = 'upload'`
  const nameOf = connection.scalar<string>`SELECT name FROM organizations WHERE id = ?`

  const storedBytes = (organizationId: string): number => stored.get(organizationId) ?? 0
  const uploadsSince = (organizationId: string, at: number): number => uploads.get(organizationId, at) ?? 0
  const reached = (organizationId: string, limit: LimitReached['limit'], max: number, used: number): LimitReached => ({
    limit,
    organization: nameOf.get(organizationId) ?? organizationId,
    max,
    used,
  })

  return {
    of: (organizationId: string, dayStart: number): OrganizationUse => ({
      pendingJobs: jobCounts.openOf(organizationId),
      storedBytes: storedBytes(organizationId),
      uploadsToday: uploadsSince(organizationId, dayStart),
    }),

    /** The limit that forbids further jobs, one or `count`; undefined if none does. */
    forbidsJobs(organizationId: string, max: JobLimits, count = 1): LimitReached | undefined {
      if (max.pendingJobs > 0) {
        const used = jobCounts.openOf(organizationId)
        if (used + count > max.pendingJobs) return reached(organizationId, 'pending_jobs', max.pendingJobs, used)
      }
      if (max.storedBytes > 0) {
        const used = storedBytes(organizationId)
        if (used >= max.storedBytes) return reached(organizationId, 'stored_bytes', max.storedBytes, used)
      }
      return undefined
    },

    /** The limit that forbids one more file of this size; undefined if none does. */
    forbidsFile(
      organizationId: string,
      { bytes, isUpload }: { bytes: number; isUpload: boolean },
      max: StorageLimits,
    ): LimitReached | undefined {
      if (max.storedBytes > 0) {
        const used = storedBytes(organizationId)
        if (used + bytes > max.storedBytes) return reached(organizationId, 'stored_bytes', max.storedBytes, used)
      }
      if (isUpload && max.uploadsPerDay > 0) {
        const used = uploadsSince(organizationId, max.dayStart)
        if (used >= max.uploadsPerDay) return reached(organizationId, 'uploads_per_day', max.uploadsPerDay, used)
      }
      return undefined
    },
  }
}
