import { anthropicError, anthropicStatus } from '../../../core/dialects/anthropic/anthropic-stream.ts'
import type { Failure } from '../../../core/failure.ts'

/** Renders a failure in Anthropic's form. */
export const anthropicErrors = (failure: Failure, call: { id: string }) => ({
  status: anthropicStatus(failure),
  body: anthropicError(failure, call.id),
})

/** What all routes of the Anthropic-compatible API have in common. */
export const anthropicRoute = {
  tag: 'Anthropic',
  errors: anthropicErrors,
  // Anthropic's clients read the id of the request from this header.
  addAnswerHeaders(headers: string[], { id }: { id: string }) {
    headers.push('request-id', id)
  },
} as const
