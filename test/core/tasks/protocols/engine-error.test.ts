import { expect, test } from 'vitest'
import { engineErrorIn, failureOfEngine } from '../../../../core/tasks/protocols/engine-error.ts'

const words = (message: string) => ({ message, code: null, type: '', param: null, tokens: 400, context: 256 })

test.each([
  [
    'in the words of the engine where it speaks as we do',
    "This model's maximum context length is 256 tokens. 'messages' has 400 tokens. Shorten it.",
    "This model's maximum context length is 256 tokens. 'messages' has 400 tokens. Shorten it.",
  ],
  [
    'in the words of vLLM, to which the remedy is added',
    "This model's maximum context length is 256 tokens. However, your prompt contains at least 400 input tokens.",
    "This model's maximum context length is 256 tokens. However, your prompt contains at least 400 input tokens. Shorten it.",
  ],
  [
    'in ours where the engine is short of words',
    'prompt too long',
    "This model's maximum context length is 256 tokens. The request has 400 tokens. Shorten it. The engine says: prompt too long",
  ],
  [
    'as at least as many tokens where the engine stopped counting',
    'your prompt contains at least 400 input tokens',
    "This model's maximum context length is 256 tokens. The request has at least 400 tokens. Shorten it. The engine says: your prompt contains at least 400 input tokens",
  ],
])('a prompt that is too long is reported once: %s', (_rule, message, said) => {
  expect(failureOfEngine(400, words(message), 'context_length_exceeded')).toMatchObject({
    message: said,
    facts: { prompt_tokens: 400, context_length: 256 },
  })
})

test('a prompt that is too long without both numbers has the words that programs look for', () => {
  const message = 'too large to process. increase the physical batch size'
  const failure = failureOfEngine(400, { ...words(message), tokens: null, context: null }, 'context_length_exceeded')
  expect(failure.message).toBe(
    `The prompt exceeds this model's maximum context length. Shorten it. The engine says: ${message}`,
  )
  expect(failure.facts).toBeUndefined()
})

test.each([
  [
    'vLLM 0.32',
    "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens, which exceeds this limit even without any output tokens.",
    [2049, 2048],
  ],
  [
    'vLLM 0.32, with a limit',
    "This model's maximum context length is 2048 tokens. However, you requested 500 output tokens and your prompt contains at least 1549 input tokens, for a total of at least 2049 tokens.",
    [1549, 2048],
  ],
  ['SGLang 0.5.23', "The input (3019 tokens) is longer than the model's context length (2048 tokens).", [3019, 2048]],
  [
    'SGLang 0.5.23, with a limit',
    "Requested token count exceeds the model's maximum context length of 2048 tokens. You requested a total of 2519 tokens: 2019 tokens from the input messages and 500 tokens for the completion.",
    [2019, 2048],
  ],
])('the numbers of %s', (_engine, message, [tokens, context]) =>
  expect(engineErrorIn(JSON.stringify({ error: { message } }))).toMatchObject({ tokens, context }),
)
