import { expect, test } from 'vitest'
import type { FailureCode } from '../../../core/failure.ts'
import { parseConfig } from '../../../core/models/config.ts'
import { fallbackReason, isFor, plannedFallback } from '../../../core/models/fallbacks.ts'
import type { FallbackReason } from '../../../core/schemas/fallback-reason.ts'

test.each<[code: FailureCode, waited: boolean, reason: FallbackReason | undefined]>([
  ['worker_error', false, 'failed'],
  ['model_load_failed', false, 'failed'],
  ['no_capacity', false, 'failed'],
  ['timeout', false, 'failed'],
  ['no_capacity', true, 'wait'],
  ['queue_full', true, 'wait'],
  ['context_length_exceeded', false, 'context'],
  ['invalid_value', false, undefined],
  ['shutting_down', false, undefined],
  ['token_revoked', false, undefined],
  ['internal_error', false, undefined],
])('%s, waited: %s, gives the reason %s', (code, waited, reason) => {
  expect(fallbackReason({ code }, waited)).toBe(reason)
})

test('a fallback is for its conditions', () => {
  const reasons: FallbackReason[] = ['failed', 'context', 'wait']
  const of = (when: ('failed' | 'context')[], wait?: number) =>
    reasons.filter(reason => isFor({ model: 'b', when, wait }, reason))
  expect(of(['failed'])).toEqual(['failed'])
  expect(of(['context'], 1)).toEqual(['context', 'wait'])
})

const withFallbacks = {
  id: 'a',
  fallbacks: [
    { model: 'b', when: ['context' as const] },
    { model: 'c', when: ['failed' as const], wait: 30_000 },
  ],
}
test.each<[plan: Parameters<typeof plannedFallback>[1], answered: object | undefined]>([
  [{ status: 'ready', etaMs: 0 }, undefined],
  [{ status: 'load', etaMs: 30_000 }, undefined],
  [
    { status: 'load', etaMs: 40_000 },
    {
      modelId: 'c',
      reason: 'wait',
      detail: "'c' would answer, because a request would wait longer for 'a' than 30s.",
    },
  ],
  [
    { status: 'refused', etaMs: null },
    { modelId: 'c', reason: 'failed', detail: "'c' would answer, because 'a' cannot serve." },
  ],
])('with the plan %j the fallback %j would answer', (plan, answered) => {
  expect(plannedFallback(withFallbacks, plan)).toEqual(answered)
  expect(plannedFallback({ id: 'a' }, plan)).toBeUndefined()
})

const entry = (id: string, more: string) => `  - {id: ${id}, source: x${more}}\n`
test.each<[what: string, fallback: string, words: string]>([
  ['itself', '{model: a}', "the model 'a' is its own fallback"],
  ['an unknown model', '{model: z}', "the fallback 'z' of 'a' is not the id of a model here"],
  ['an alias', '{model: bee}', "but another name of 'b' or of its adapter. Name 'b'."],
  [
    'one of eleven',
    Array.from({ length: 11 }, (_, at) => `{model: m${at}}`).join(', '),
    "'models[0].fallbacks' has more than 10 entries",
  ],
  [
    'a model of other tasks',
    '{model: vectors}',
    "the fallback 'vectors' does not do std/chat-completion, which 'a' does",
  ],
  ['the same twice', '{model: b}, {model: b}', "the fallback 'b' of 'a' is listed twice"],
  ['no condition', '{model: b, when: []}', "Name a condition in 'when', or set 'wait'"],
  ['another key', '{model: b, on: x}', "no setting 'on'"],
])('a fallback that is %s is an error with its place', (_, fallback, words) => {
  const models = `${entry('a', `, fallbacks: [${fallback}]`)}${entry('b', ', aliases: [bee]')}${entry('vectors', ', tasks: [std/embeddings]')}`
  const parse = () => parseConfig(`models:\n${models}`, 'infer.yaml')
  expect(parse).toThrow(words)
  expect(parse).toThrow(/^infer\.yaml:2:\d+: /)
})

test.each([
  ['remote, url: "http://there"', true],
  ['llama-server, source: /b.gguf', false],
])('a fallback with engine: %s of a model that is local_only is refused: %s', (engine, isRefused) => {
  const text = `models:\n  - {id: a, source: /a.gguf, local_only: true, fallbacks: [{model: b}]}\n  - {id: b, engine: ${engine}}\n`
  const read = () => parseConfig(text, '/infer.yaml')
  if (isRefused) expect(read).toThrow("the fallback 'b' runs elsewhere, and 'a' is 'local_only'")
  else expect(read).not.toThrow()
})

test('models may be fallbacks of each other in a chain of any length, because only those of the requested one are asked', () => {
  const ids = Array.from({ length: 12 }, (_, at) => `m${at}`)
  const models = ids.map((id, at) => entry(id, `, fallbacks: [{model: ${ids[(at + 1) % 12]}}]`)).join('')
  expect(parseConfig(`models:\n${models}`, 'infer.yaml').models).toHaveLength(12)
})

test('two models may be fallbacks of each other', () => {
  const models = entry('a', ', fallbacks: [{model: b}]') + entry('b', ', fallbacks: [{model: a, wait: 30s}]')
  expect(parseConfig(`models:\n${models}`, 'infer.yaml').models[1]!.fallbacks).toEqual([
    { model: 'a', when: ['failed', 'context'], wait: 30_000 },
  ])
})
