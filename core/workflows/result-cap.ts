import { Failure } from '../failure.ts'
import type { RunResult } from '../tasks/run-job.ts'

/** The maximum size of a node's result, bytes of JSON. Source: the API contract, 2.8. */
export const maxNodeResultBytes = 16 << 20

/**
 * The failure for a result that is too large, or undefined. The same work would produce it again, so it is not retried.
 */
export function oversize(nodeId: string, result: RunResult['result']): Failure | undefined {
  const bytes = typeof result === 'string' ? Buffer.byteLength(result) : result.byteLength
  if (bytes <= maxNodeResultBytes) return undefined
  const size = (bytes / (1 << 20)).toFixed(1)
  return new Failure(
    'payload_too_large',
    `The result of node '${nodeId}' has ${size} MiB; the limit is 16 MiB. Split the work over several nodes.`,
  )
}
