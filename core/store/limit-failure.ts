import { Failure } from '../failure.ts'
import { bytesText } from '../quantities.ts'
import { dayMs, dayStartOf, type LimitReached } from './limit-reached.ts'

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
