import { Failure } from '../core/failure.ts'
import type { OpenPoolLauncher } from './pool-launches.ts'

/** Opens the launcher of a pool, by its kind. */
export const openPoolLauncher: OpenPoolLauncher = async ({ pool, settings: { kind } }) => {
  throw new Failure('worker_error', `The pool '${pool}' cannot be used: this build has no launcher for '${kind}'.`)
}
