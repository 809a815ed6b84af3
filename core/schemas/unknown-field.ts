import type { FailureCode, FailureDetail } from '../failure.ts'
import { nearest } from '../nearest.ts'

/** Longer names are cut in messages and not compared: the comparison takes time by the product of both lengths. */
const longestName = 64

/** Reports a field that a request must not have, with the known name that is nearest to it. */
export function unknownField(parent: string, name: string, known: Iterable<string>): FailureDetail<FailureCode> {
  const path = parent === '' ? name : `${parent}.${name}`
  const meant = nearest(name.slice(0, longestName), known)
  const next = meant === undefined ? 'Leave it out.' : `Did you mean '${meant}'?`
  return {
    code: 'unknown_parameter',
    path,
    message: `Unknown parameter: '${path.length > 128 ? `${path.slice(0, 128)}…` : path}'. ${next}`,
  }
}
