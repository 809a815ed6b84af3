import type { Failure } from '../../../core/failure.ts'
import { generationErrorBody } from '../../views/generation-error.ts'

/** Renders a failure in the form of the slug API. */
export const slugErrors = (failure: Failure, call: { id: string }): { status: number; body: object } => ({
  status: failure.status,
  body: generationErrorBody(failure, call.id),
})
