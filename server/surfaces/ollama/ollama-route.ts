import type { Failure } from '../../../core/failure.ts'
import { routeOf } from '../../http/request/route.ts'
import { loopbackCaller } from './loopback.ts'

/** Returns the error of a request in Ollama's form: the message alone, besides what helps to find its cause. */
export const ollamaErrors = (failure: Failure, call: { id: string }) => ({
  status: failure.status,
  body: { error: failure.message, code: failure.code, ...failure.facts, request_id: call.id },
})

/** Makes a route of the Ollama-compatible API. */
export const ollamaRoute = routeOf({
  tag: 'Ollama',
  errors: ollamaErrors,
  formIsJson: true,
  callerWithoutToken: loopbackCaller,
})
