import { anthropicError, anthropicStatus } from '../../../core/dialects/anthropic/anthropic-error.ts'
import type { Failure } from '../../../core/failure.ts'
import type { Call } from '../../http/request/call.ts'

/** Renders a failure in Anthropic's form. */
export const anthropicErrors = (failure: Failure, call: Pick<Call, 'id'>) => ({
  status: anthropicStatus(failure),
  body: anthropicError(failure, call.id),
})
