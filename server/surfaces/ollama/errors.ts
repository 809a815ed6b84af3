import type { Failure } from '../../../core/failure.ts'
import type { Call } from '../../http/request/call.ts'

/** Returns the error of a request in Ollama's form: the message alone, besides what helps to find its cause. */
export const ollamaErrors = (failure: Failure, call: Pick<Call, 'id'>) => ({
  status: failure.status,
  body: { error: failure.message, code: failure.code, ...failure.facts, request_id: call.id },
})
