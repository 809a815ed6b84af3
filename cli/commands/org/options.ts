import { type Command, InvalidArgumentError } from 'commander'
import type { OrganizationLimitsChange } from '../../../core/accounts/organization-view.ts'
import { Bytes } from '../../../core/quantities.ts'
import { type CommonOptions, type Given, nothing, orNull, readOrNone, withCommon } from '../../terminal/options.ts'

function readBytesOrNone(text: string): number | typeof nothing {
  if (text === nothing) return nothing
  const read = Bytes.safeParse(text)
  if (!read.success) throw new InvalidArgumentError('Write it as 500MiB, 20GiB or none.')
  return read.data
}

const most = 1_000_000_000
const readCountOrNone = readOrNone(0, most)

/** Limits on the command line. `none` is null: the figure of the plan. */
export interface LimitOptions {
  requestsPerMinute?: Given<number>
  jobsPerMinute?: Given<number>
  concurrentRequests?: Given<number>
  pendingJobs?: Given<number>
  storedBytes?: Given<number>
  uploadsPerDay?: Given<number>
  spendLimit?: Given<number>
}

/** Adds an option for each limit of an organization. */
export const withLimits = (command: Command): Command =>
  command
    .option('--requests-per-minute <count>', 'API requests per minute; 0 is no limit', readCountOrNone)
    .option('--jobs-per-minute <count>', 'submissions of work per minute; 0 is no limit', readCountOrNone)
    .option('--concurrent-requests <count>', 'synchronous requests at the same time; 0 is no limit', readCountOrNone)
    .option('--pending-jobs <count>', 'jobs that wait or run; 0 is no limit', readCountOrNone)
    .option('--stored-bytes <size>', 'all its files, such as 20GiB; 0 is no limit', readBytesOrNone)
    .option('--uploads-per-day <count>', 'uploaded files per day in UTC; 0 is no limit', readCountOrNone)
    .option(
      '--spend-limit <amount>',
      'spending per calendar month in UTC; 0 is no spending',
      readOrNone(0, most, false),
    )

/** Converts the options to the limits of the API; undefined if none was given. */
export function organizationLimitsChange(options: LimitOptions): OrganizationLimitsChange | undefined {
  const limits = {
    api_requests_per_minute: orNull(options.requestsPerMinute),
    job_submissions_per_minute: orNull(options.jobsPerMinute),
    concurrent_requests: orNull(options.concurrentRequests),
    pending_jobs: orNull(options.pendingJobs),
    stored_bytes: orNull(options.storedBytes),
    uploads_per_day: orNull(options.uploadsPerDay),
    monthly_spend_limit: orNull(options.spendLimit),
  }
  const given = Object.entries(limits).filter(([, limit]) => limit !== undefined)
  return given.length === 0 ? undefined : Object.fromEntries(given)
}
