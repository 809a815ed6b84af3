import type { FailureCode, FailureDetail } from '../failure.ts'
import { nearest } from '../nearest.ts'

/** Names are cut to this length before they are compared: the time grows with the product of both lengths. */
const longestName = 64

/** Reports a field that a request must not have, with the most similar known name. */
export function unknownField(parent: string, name: string, known: Iterable<string>): FailureDetail<FailureCode> {
  const path = parent === '' ? name : `${parent}.${name}`
  const similar = nearest(name.slice(0, longestName), known)
  const advice = similar === undefined ? 'Leave it out.' : `Did you mean '${similar}'?`
  return {
    code: 'unknown_parameter',
    path,
    message: `Unknown parameter: '${path.length > 128 ? `${path.slice(0, 128)}…` : path}'. ${advice}`,
  }
}
