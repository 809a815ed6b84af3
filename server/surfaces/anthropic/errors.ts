import { anthropicError, anthropicStatus } from '../../../core/dialects/anthropic/anthropic-error.ts'
import type { Failure } from '../../../core/failure.ts'

/** Renders a failure in Anthropic's form. */
export const anthropicErrors = (failure: Failure, call: { id: string }) => ({
  status: anthropicStatus(failure),
  body: anthropicError(failure, call.id),
})
