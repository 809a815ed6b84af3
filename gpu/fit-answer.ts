import type { Failure } from '../core/failure.ts'
import type { EngineCall } from '../core/models/fleet.ts'
import { textIn } from './body-text.ts'

const limits = ['max_tokens', 'max_completion_tokens'] as const

/**
 * Returns the body of a refused request with as many tokens for the answer as fit in the context; undefined where that
 * is not why it was refused. vLLM and SGLang refuse a request that asks for more, llama-server and the built-in engine
 * cut it: clients see the same of all.
 */
export function fitAnswer(body: EngineCall['body'], { code, facts }: Failure): string | undefined {
  const text = code === 'context_length_exceeded' ? textIn(body) : undefined
  if (text === undefined) return undefined
  const { prompt_tokens: prompt, context_length: context } = facts ?? {}
  if (typeof prompt !== 'number' || typeof context !== 'number' || prompt >= context) return undefined
  let request: Record<string, unknown>
  try {
    request = JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
  const room = context - prompt
  const over = limits.filter(name => typeof request[name] === 'number' && request[name] > room)
  if (over.length === 0) return undefined
  return JSON.stringify({ ...request, ...Object.fromEntries(over.map(name => [name, room])) })
}
