import { invalidValue } from '../../core/invalid-value.ts'
import type { Call } from '../http/request/call.ts'
import type { Owners } from '../http/request/owners.ts'
import type { JobTerms } from './submit.ts'
import { webhookInQuery } from './webhook-terms.ts'

const aWeek = 7 * 86_400
const tenYears = 3_650 * 86_400

const invalidHeader = (header: string, message: string) => invalidValue(header, `'${header}' ${message}`)

/** Parses a header with a number of seconds. */
function secondsIn(header: string, text: unknown, maxSeconds: number): number {
  const seconds = typeof text === 'string' && /^\s*\d{1,9}(\.\d{1,6})?\s*$/.test(text) ? Number(text) : text
  if (typeof seconds !== 'number' || !(seconds > 0) || seconds > maxSeconds)
    throw invalidHeader(header, `must be a number of seconds of at most ${maxSeconds}.`)
  return seconds
}

function lifetimeOf(given: string): number | undefined {
  const header = 'X-Fal-Object-Lifecycle-Preference'
  let preference: { expiration_duration_seconds?: unknown } | null
  try {
    preference = JSON.parse(given) as typeof preference
  } catch {
    throw invalidHeader(header, 'must be JSON such as {"expiration_duration_seconds":3600}.')
  }
  const seconds = preference?.expiration_duration_seconds
  return seconds == null ? undefined : Math.ceil(secondsIn(header, seconds, tenYears) * 1000)
}

/**
 * Returns the start timeout, priority, retention and webhook of a request. They are headers and query parameters, so that
 * the body has only inputs of the model. Throws Failure `invalid_value`.
 */
export function jobTermsOf(call: Call, owners: Pick<Owners, 'webhooks'>): JobTerms {
  const { headers } = call.req
  const timeout = headers['x-fal-request-timeout']
  const priority = headers['x-fal-queue-priority']
  const lifetime = headers['x-fal-object-lifecycle-preference']
  if (priority !== undefined && priority !== 'low' && priority !== 'normal')
    throw invalidHeader('X-Fal-Queue-Priority', 'must be one of: low, normal.')
  return {
    priority: priority === 'low' ? -10 : 0,
    startTimeoutMs:
      timeout === undefined ? undefined : Math.ceil(secondsIn('X-Fal-Request-Timeout', timeout, aWeek) * 1000),
    webhook: webhookInQuery(call, owners),
    retentionMs: typeof lifetime === 'string' ? lifetimeOf(lifetime) : undefined,
  }
}
