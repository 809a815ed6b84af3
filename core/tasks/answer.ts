import { Failure } from '../failure.ts'
import type { Usage } from '../store/store.ts'

/** Engine output is untrusted: everything here takes what came and gives what the contract says, or fails the engine. */
export const engineFault = (what: string): Failure =>
  new Failure('worker_error', `The engine answered ${what}. Its log has more; trying again may help.`)

/** An engine's answer as an object. */
export function parseAnswer(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
  } catch {
    throw engineFault('something that is not JSON')
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw engineFault('JSON that is not an object')
  return value as Record<string, unknown>
}

const mostTokens = 100_000_000

/** A count of tokens as an engine states it: a whole number from 0 up; anything else is 0. */
export const tokenCount = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.min(Math.floor(value), mostTokens) : 0

/** The usage object of an answer; absent or senseless members count as 0. */
export function usageOf(value: unknown): Usage {
  const usage = (value ?? {}) as { prompt_tokens?: unknown; completion_tokens?: unknown; total_tokens?: unknown }
  const inputTokens = tokenCount(usage.prompt_tokens)
  return {
    inputTokens: inputTokens || (usage.completion_tokens === undefined ? tokenCount(usage.total_tokens) : 0),
    outputTokens: tokenCount(usage.completion_tokens),
  }
}

/** A finite number, or the engine is at fault. */
export function score(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw engineFault('a score that is not a number')
  return value
}

export const sigmoid = (logit: number): number => 1 / (1 + Math.exp(-logit))
