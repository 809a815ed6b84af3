import { expect, test } from 'vitest'
import { failureOfThrown, usageFailure } from '../../../cli/terminal/exit-codes.ts'
import { failureJson, failureText } from '../../../cli/terminal/failure-text.ts'
import { plainPaint } from '../../../cli/terminal/styled-line.ts'
import { Failure } from '../../../core/failure.ts'

test('a failure is printed as its message', () => {
  expect(failureText(usageFailure('Write it so.'), plainPaint)).toBe('Error: Write it so.\n')
})

test('invalid fields, the time to wait and the request id are printed below', () => {
  const failure = new Failure('rate_limit', 'Too many.', {
    retryAfterMs: 1500,
    facts: { request_id: 'req_1' },
    details: [{ path: 'messages[0]', message: 'is missing', code: 'invalid_value' }],
  })
  expect(failureText(failure, plainPaint)).toBe(
    'Error: Too many.\n  messages[0]: is missing\nTry again in 2 seconds.\nRequest req_1\n',
  )
})

test('text that is in the message already is not repeated, and a field is not named twice', () => {
  const details = ['width', 'height'].map(path => ({
    path,
    message: `'${path}' must be at least 64.`,
    code: 'invalid_value' as const,
  }))
  expect(failureText(new Failure('invalid_value', details[0]!.message, { details }), plainPaint)).toBe(
    "Error: 'width' must be at least 64.\n  'height' must be at least 64.\n",
  )
})

test('the file and the line are not repeated either', () => {
  const details = [
    { path: '1:1', message: "'models' must be an array.", code: 'invalid_value' as const },
    { path: '2:1', message: "'limits' must be an object.", code: 'invalid_value' as const },
  ]
  const failure = new Failure('invalid_value', "infer.yaml:1:1: 'models' must be an array.", { details })
  expect(failureText(failure, plainPaint)).toBe(
    "Error: infer.yaml:1:1: 'models' must be an array.\n  2:1: 'limits' must be an object.\n",
  )
})

test('the stack is printed for unexpected errors only', () => {
  expect(failureText(failureOfThrown(new TypeError('odd')), plainPaint)).toContain('TypeError: odd\n    at ')
  const expected = Object.assign(new Error('ENOENT: no'), { code: 'ENOENT', syscall: 'open' })
  expect(failureText(failureOfThrown(expected), plainPaint)).not.toContain('    at ')
})

test('for a program it is the error body of the API on one line', () => {
  const failure = new Failure('rate_limit', 'Too many.', { retryAfterMs: 1500, facts: { request_id: 'req_1' } })
  const text = failureJson(failure)
  expect(text.endsWith('}\n') && !text.slice(0, -1).includes('\n')).toBe(true)
  expect(JSON.parse(text)).toEqual({
    error: {
      code: 'rate_limit',
      message: 'Too many.',
      type: 'rate_limit_error',
      param: null,
      retry_after: 2,
      request_id: 'req_1',
    },
  })
})
