import { Failure } from '../failure.ts'
import type { RunResult } from '../tasks/run-job.ts'

/** What the result of a node may take, bytes of JSON. Source: the API contract, 2.8. */
export const largestNodeResult = 16 << 20

/** Why a node cannot give this result; undefined when it can. The same work would give it again, so nothing is retried. */
export function oversize(nodeId: string, result: RunResult['result']): Failure | undefined {
  const bytes = typeof result === 'string' ? Buffer.byteLength(result) : result.byteLength
  if (bytes <= largestNodeResult) return undefined
  const size = (bytes / (1 << 20)).toFixed(1)
  return new Failure(
    'payload_too_large',
    `The result of node '${nodeId}' has ${size} MiB, and a node may give 16 MiB. Give it less to do at once: spread it over several nodes.`,
  )
}
