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

export const dayMs = 86_400_000

/** When the calendar day of a time began in UTC, epoch milliseconds. */
export const dayStartOf = (at: number): number => Math.floor(at / dayMs) * dayMs
