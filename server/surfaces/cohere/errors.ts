import type { Failure } from '../../../core/failure.ts'
import { errorBody } from '../../http/request/errors.ts'

/** Returns an error with the `message` and `id` that Cohere's clients read, besides the common format. */
export const cohereErrors = (failure: Failure, call: { id: string }) => ({
  status: failure.status,
  body: { message: failure.message, id: call.id, ...errorBody(failure, call.id) },
})
