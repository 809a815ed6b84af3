import { expect, test } from 'vitest'
import { failureOfEngine } from '../../../../core/tasks/protocols/engine-error.ts'

const words = (message: string) => ({ message, code: null, type: '', param: null, tokens: 400, context: 256 })

test.each([
  [
    'in the words of the engine where it speaks as we do',
    "'messages' has 400 tokens, but the context length of this model is 256, the answer included. Shorten it.",
    "'messages' has 400 tokens, but the context length of this model is 256, the answer included. Shorten it.",
  ],
  [
    'in ours where the engine is short of words',
    'prompt too long',
    'The request has 400 tokens, but the context length of this model is 256. Shorten it. The engine says: prompt too long',
  ],
])('a prompt that is too long is reported once: %s', (_rule, message, said) => {
  expect(failureOfEngine(400, words(message), 'context_length_exceeded')).toMatchObject({
    message: said,
    facts: { prompt_tokens: 400, context_length: 256 },
  })
})
