import { Failure } from '../failure.ts'
import { bytesText } from '../quantity-text.ts'

/** How much an organization uses of the limits on what it has stored. */
export interface OrganizationUse {
  /** Jobs that wait or run. */
  pendingJobs: number
  /** Bytes of its files, removed ones not included. */
  storedBytes: number
  /** Files uploaded since the beginning of the day, removed ones included. */
  uploadsToday: number
}

/** Limits on new jobs; 0 is unlimited. */
export interface JobLimits {
  pendingJobs: number
  /** Forbids jobs once the files of the organization have this size, for jobs that write files. */
  storedBytes: number
}

/** Limits on new files; 0 is unlimited. */
export interface StorageLimits {
  storedBytes: number
  uploadsPerDay: number
  /** When the calendar day began in UTC, epoch milliseconds. */
  dayStart: number
}

/** A limit of an organization that forbids a new row. */
export interface LimitReached {
  limit: 'pending_jobs' | 'stored_bytes' | 'uploads_per_day'
  /** The name of the organization. */
  organization: string
  max: number
  used: number
}

const dayMs = 86_400_000

/** When the calendar day of a time began in UTC, epoch milliseconds. */
export const dayStartOf = (at: number): number => Math.floor(at / dayMs) * dayMs

/** The failure of a request that a limit of its organization forbids: what to do, and when to send it again. */
export function limitFailure({ limit, organization, max, used }: LimitReached, now = Date.now()): Failure {
  const facts = { limit, limit_of: 'organization' }
  switch (limit) {
    case 'pending_jobs':
      return new Failure(
        'queue_full',
        `The organization '${organization}' has ${used} jobs that wait or run, and may have ${max}. Submit this one when one has ended, or cancel one: GET /api/jobs?status=pending lists them.`,
        { facts },
      )
    case 'stored_bytes':
      return new Failure(
        'storage_full',
        `The files of the organization '${organization}' have ${bytesText(used)} of the ${bytesText(max)} that it may store, so there is no room for another. Delete files (DELETE /std/v1/files/{id}), jobs with their files (DELETE /api/jobs/{id}) or items of the library.`,
        { facts: { ...facts, used_bytes: used, max_bytes: max } },
      )
    case 'uploads_per_day': {
      const retryAfterMs = dayStartOf(now) + dayMs - now
      return new Failure(
        'rate_limit',
        `The organization '${organization}' may upload ${max} files a day and has done so. It may upload again from ${new Date(now + retryAfterMs).toISOString()}.`,
        { retryAfterMs, facts },
      )
    }
  }
}
