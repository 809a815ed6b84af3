import type { Failure } from '../../../core/failure.ts'
import { routeOf } from '../../http/request/route.ts'
import { generationErrorBody } from '../../views/generation-error.ts'

/** Renders a failure in the form of the slug API. */
export const slugErrors = (failure: Failure, call: { id: string }): { status: number; body: object } => ({
  status: failure.status,
  body: generationErrorBody(failure, call.id),
})

/** Makes a route of the slug API. */
export const slugRoute = routeOf({ tag: 'Generation', errors: slugErrors })
