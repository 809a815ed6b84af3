import { Failure } from '../../../core/failure.ts'
import type { ClientExchange } from './exchange.ts'
import type { Owners } from './owners.ts'

/**
 * Counts a request with an address that gives no right, and returns its failure: `not_found` with the message, and `rate_limit` for
 * a client that keeps sending such.
 */
export function wrongAddress(
  { clientAddress }: ClientExchange,
  message: string,
  { wrongTokens }: Owners<'wrongTokens'>,
): Failure {
  const waitMs = wrongTokens.blockedFor(clientAddress)
  wrongTokens.count(clientAddress)
  return waitMs > 0
    ? new Failure('rate_limit', 'Too many wrong addresses came from here. Wait, then try again.', {
        retryAfterMs: waitMs,
      })
    : new Failure('not_found', message)
}
