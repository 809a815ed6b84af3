import { invalid } from '../failure.ts'
import { boundedJsonOf, isObject } from '../json.ts'
import type { ChatStreamForm } from './chat-form.ts'

/** Returns the reasoning effort for a number of tokens that the model may reason; undefined without a number. */
export function effortOfBudget(tokens: number | null | undefined): 'low' | 'medium' | 'high' | undefined {
  if (tokens === undefined || tokens === null) return undefined
  return tokens < 4096 ? 'low' : tokens < 16_384 ? 'medium' : 'high'
}

/** Returns the value. Throws Failure for a member that is absent and that its type of object must have. */
export function needed<Value>(value: Value | null | undefined, param: string): Value {
  if (value === undefined || value === null)
    throw invalid(param, `Missing required parameter: '${param}'.`, 'missing_required_parameter')
  return value
}

/** Returns a typed server-sent event. */
export const typedEvent = (type: string, members: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`

/**
 * Parses the arguments of a tool call. Arguments that are not a JSON object, nest too deep, or were cut off by the token
 * limit, become the member `arguments`: the caller's tool refuses them, and the model can correct itself.
 */
export function argumentsOf(text: string): Record<string, unknown> {
  const value = boundedJsonOf(text || '{}')
  return isObject(value) ? value : { arguments: text }
}

/** For forms whose answers are not streamed. */
export function noStream(): ChatStreamForm {
  throw new Error('Embeddings have no stream')
}
