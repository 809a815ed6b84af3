import { expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { fitAnswer } from '../../../gpu/requests/fit-answer.ts'

const tooLong = (prompt_tokens?: number, context_length?: number) =>
  new Failure(
    'context_length_exceeded',
    'Too long.',
    prompt_tokens && context_length ? { facts: { prompt_tokens, context_length } } : {},
  )
const body = (more: object) => JSON.stringify({ model: 'm', ...more })

test.each<[rule: string, body: string, failure: Failure, fitting: object | undefined]>([
  ['as many as fit', body({ max_tokens: 5000 }), tooLong(20, 2048), { model: 'm', max_tokens: 2028 }],
  [
    'with the newer name of the parameter',
    body({ max_completion_tokens: 2029 }),
    tooLong(20, 2048),
    { model: 'm', max_completion_tokens: 2028 },
  ],
  ['the answer fits: something else is too long', body({ max_tokens: 16 }), tooLong(20, 2048), undefined],
  ['without a requested number of tokens', body({}), tooLong(20, 2048), undefined],
  ['the prompt alone is too long', body({ max_tokens: 16 }), tooLong(3000, 2048), undefined],
  ['the engine gives no figures', body({ max_tokens: 5000 }), tooLong(), undefined],
  ['another failure', body({ max_tokens: 5000 }), new Failure('invalid_value', 'No.'), undefined],
])('%s', (_, sent, failure, fitting) => {
  const fitted = fitAnswer(sent, failure)
  expect(fitted === undefined ? undefined : JSON.parse(fitted)).toEqual(fitting)
})
