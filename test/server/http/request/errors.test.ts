import { expect, test } from 'vitest'
import { Failure, type FailureCode, type FailureMore } from '../../../../core/failure.ts'
import { errorHeaders } from '../../../../server/http/request/errors.ts'

test.each<[rule: string, code: FailureCode, more: FailureMore, retry: string | undefined, seconds: string | undefined]>(
  [
    ['missing capacity passes', 'no_capacity', {}, 'true', '10'],
    ['a model is loaded soon', 'model_warming_up', { retryAfterMs: 4_000 }, 'true', '4'],
    ['capacity rarely changes sooner', 'no_capacity', { retryAfterMs: 1_000 }, 'true', '10'],
    ['and clients ignore more', 'no_capacity', { retryAfterMs: 120_000 }, 'true', '30'],
    [
      'what an engine has asked for is passed on',
      'no_capacity',
      { retryAfterMs: 120_000, askedByEngine: true },
      'true',
      '120',
    ],
    ['what somebody has to change first', 'no_capacity', { final: true }, 'false', undefined],
    ['a spent quota', 'quota_exceeded', {}, 'false', undefined],
    ['the same request is running', 'idempotency_key_in_use', { retryAfterMs: 1_000 }, 'true', '1'],
    ['a rate', 'rate_limit', { retryAfterMs: 1_500 }, undefined, '2'],
    ['a wrong value', 'invalid_value', {}, undefined, undefined],
  ],
)('%s', (_, code, more, retry, seconds) => {
  const flat = errorHeaders(new Failure(code, 'No.', more))
  const headers = Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]]] : [])))
  expect([headers['x-should-retry'], headers['retry-after']]).toEqual([retry, seconds])
})
