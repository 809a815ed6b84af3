import { Failure } from '../core/failure.ts'
import type { Resident } from './residency/model-state.ts'

/** Why the requests of an engine fail that has ended. `reason`: a sentence. */
export const engineEnded = (resident: Resident, reason: string): Failure =>
  new Failure('worker_error', `The engine of '${resident.serves.model.id}' has ended. ${reason}`)

export const notReached = ({ serves }: Resident): Failure =>
  new Failure('worker_error', `The engine of '${serves.model.id}' cannot be reached any more. Trying again may help.`)

/** Not charged: jobs run again once a device may be used, and callers get 503. */
export const givenAway = (resident: Resident): Failure =>
  new Failure(
    'no_capacity',
    `The engine of '${resident.serves.model.id}' was stopped at once, because its device is paused.`,
  )
