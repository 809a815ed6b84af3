import { anthropicError, anthropicStatus } from '../../../core/dialects/anthropic/anthropic-error.ts'
import type { Failure } from '../../../core/failure.ts'
import { routeOf } from '../../http/request/route.ts'

/** Renders a failure in Anthropic's form. */
export const anthropicErrors = (failure: Failure, call: { id: string }) => ({
  status: anthropicStatus(failure),
  body: anthropicError(failure, call.id),
})

/** Makes a route of the Anthropic-compatible API. */
export const anthropicRoute = routeOf({
  tag: 'Anthropic',
  errors: anthropicErrors,
  // Anthropic's clients read the id of the request from this header.
  addAnswerHeaders(headers, { id }) {
    headers.push('request-id', id)
  },
})
