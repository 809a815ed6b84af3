import { openLimiter, type RequestLimiter } from '../accounts/limiter.ts'
import { type Credits, openCredits } from './credits.ts'

/**
 * Opens the limits of requests. Beside gateway processes also the credits by which those get a part of all limits: `enter`
 * may then wait until what they hold is back.
 */
export function openRequestLimits({
  hasFronts,
  ...options
}: Omit<Parameters<typeof openCredits>[0], 'limiter'> & { hasFronts: boolean }): {
  limiter: RequestLimiter
  credits: Credits | undefined
} {
  const limiter = openLimiter()
  if (!hasFronts) return { limiter, credits: undefined }
  const credits = openCredits({ limiter, ...options })
  const enter: RequestLimiter['enter'] = (caller, bucket) => credits.enter(caller, () => limiter.enter(caller, bucket))
  return { limiter: { ...limiter, enter }, credits }
}
