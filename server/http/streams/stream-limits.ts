import type { ServerResponse } from 'node:http'
import type { Caller } from '../../../core/accounts/accounts.ts'
import { Failure } from '../../../core/failure.ts'

/**
 * Milliseconds before a refused reader should retry. Streams end when readers disconnect, which cannot be predicted.
 */
const tryAgainMs = 5_000

/**
 * Limits how many event streams and log followers a token and an organization have open at a time. Each costs memory
 * while its reader is connected. Streams of generations are not counted: admission and the queue limit those.
 */
export function openStreamLimits(limits: { streams_per_token: number; streams_per_organization: number }) {
  const open = new Map<string, number>()

  function add(id: string, by: 1 | -1) {
    const count = (open.get(id) ?? 0) + by
    if (count === 0) open.delete(id)
    else open.set(id, count)
  }

  return {
    /** Counts one more stream until the response of the request closes. Throws Failure `rate_limit` at a limit. */
    take({ caller, disconnected, res }: { caller: Caller; disconnected: boolean; res: ServerResponse }): void {
      const { organizationId, tokenId, token } = caller
      const bounds = [
        { id: tokenId, of: `token '${token.name}'`, name: 'streams_per_token' },
        { id: organizationId, of: `organization '${token.organizationName}'`, name: 'streams_per_organization' },
      ] as const
      for (const { id, of, name } of bounds)
        if ((open.get(id) ?? 0) >= limits[name])
          throw new Failure(
            'rate_limit',
            `The ${of} has ${limits[name]} event streams open, which is its limit. Close one, or raise limits.${name} in infer.yaml.`,
            { retryAfterMs: tryAgainMs, facts: { limit: `limits.${name}` } },
          )
      if (disconnected) return
      for (const { id } of bounds) add(id, 1)
      res.once('close', () => {
        for (const { id } of bounds) add(id, -1)
      })
    },
  }
}
export type StreamLimits = ReturnType<typeof openStreamLimits>
