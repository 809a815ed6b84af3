import type { Failure } from '../../core/failure.ts'
import { jsonOf } from '../../core/json.ts'
import type { EngineCall } from '../../core/models/engine-call.ts'
import { bodyText } from '../presets/preset.ts'

const limitFields = ['max_tokens', 'max_completion_tokens'] as const

/**
 * Returns the body of a refused request with the token limit of its answer reduced to what fits in the context;
 * undefined when the request was refused for another reason. vLLM and SGLang refuse such requests, llama-server and the
 * built-in engine reduce the limit themselves; with this, clients see the same behaviour from all of them.
 */
export function fitAnswer(body: EngineCall['body'], { code, facts }: Failure): string | undefined {
  const text = code === 'context_length_exceeded' ? bodyText(body) : undefined
  if (text === undefined) return undefined
  const { prompt_tokens: prompt, context_length: context } = facts ?? {}
  if (typeof prompt !== 'number' || typeof context !== 'number' || prompt >= context) return undefined
  const request = jsonOf(text) as Record<string, unknown> | undefined
  if (request === undefined) return undefined
  const remaining = context - prompt
  const tooLarge = limitFields.filter(name => typeof request[name] === 'number' && request[name] > remaining)
  if (tooLarge.length === 0) return undefined
  return JSON.stringify({ ...request, ...Object.fromEntries(tooLarge.map(name => [name, remaining])) })
}
