import { expect, test } from 'vitest'
import { Failure } from '../../core/failure.ts'

test('a failure with other fields keeps all the rest, so that its retries stay what they were', () => {
  const more = {
    param: 'model',
    retryAfterMs: 600_000,
    askedByEngine: true,
    final: true,
    facts: { eta_seconds: 600 },
    details: [{ code: 'invalid_value', path: 'a', message: 'No.' }] as const,
    validation: [{ loc: ['body'], msg: 'No.', type: 'x' }],
    engineText: 'busy',
    cause: new Error('429'),
  }
  const failure = new Failure('no_capacity', 'Full.', { ...more, details: [...more.details] })
  const changed = failure.with({ message: 'Still full.', backOffMs: 5 })
  expect(Object.assign({}, changed)).toEqual(Object.assign({}, failure, { backOffMs: 5 }))
  expect(changed.cause).toBe(more.cause)
  expect([changed.code, changed.message, changed.retryable]).toEqual(['no_capacity', 'Still full.', false])
})
