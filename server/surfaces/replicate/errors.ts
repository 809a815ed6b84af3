import type { Failure } from '../../../core/failure.ts'
import { errorBody } from '../../http/request/errors.ts'
import { routeOf } from '../../http/request/route.ts'

/** Returns the error of a request in Replicate's form, with the common form beside it. */
export const replicateErrors = (failure: Failure, exchange: { id: string }) => ({
  status: failure.status,
  body: { title: failure.code, detail: failure.message, status: failure.status, ...errorBody(failure, exchange.id) },
})

/** Makes a route of the Replicate-compatible API. */
export const replicateRoute = routeOf({ tag: 'Replicate', errors: replicateErrors })
