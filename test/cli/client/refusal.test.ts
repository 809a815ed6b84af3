import { expect, test } from 'vitest'
import { errorInBody, serverRefusal } from '../../../cli/client/refusal.ts'
import { exitCodeOf } from '../../../cli/terminal/exit-codes.ts'

const url = 'http://127.0.0.1:8787'
const refuse = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  serverRefusal(url, typeof body === 'string' ? body : JSON.stringify(body), { status, headers })

test('an API error keeps its code, message, parameter and invalid fields', () => {
  const details = [{ path: 'model', message: 'is missing', code: 'missing_required_parameter' }]
  const failure = refuse(400, { error: { code: 'invalid_value', message: 'Wrong.', param: 'model', details } })
  expect(failure).toMatchObject({ code: 'invalid_value', message: 'Wrong.', param: 'model', details })
})

test('every error of a server exits with 1, even one that means invalid data locally', () => {
  expect(exitCodeOf(refuse(400, { error: { code: 'invalid_value', message: 'Wrong.' } }))).toBe(1)
  expect(exitCodeOf(refuse(500, { error: { code: 'internal_error', message: 'Oh.' } }))).toBe(1)
})

test('the time to wait comes from the more precise header', () => {
  const body = { error: { code: 'rate_limit', message: 'Slow.' } }
  expect(refuse(429, body, { 'retry-after': '2', 'retry-after-ms': '1250' }).retryAfterMs).toBe(1250)
  expect(refuse(429, body, { 'retry-after': '2' }).retryAfterMs).toBe(2000)
  expect(refuse(429, body, { 'retry-after': 'Fri, 01 Jan 2027 00:00:00 GMT' }).retryAfterMs).toBeUndefined()
  expect(refuse(429, body).retryAfterMs).toBeUndefined()
})

test('an unknown code of a newer server becomes the nearest one by status', () => {
  expect(refuse(404, { error: { code: 'voice_not_found', message: 'No voice.' } })).toMatchObject({
    code: 'not_found',
    message: 'No voice.',
  })
  expect(refuse(418, { error: { code: 'teapot', message: 'Tea.' } }).code).toBe('invalid_value')
  expect(refuse(599, { error: { code: 'odd', message: 'Odd.' } }).code).toBe('worker_error')
  expect(refuse(500, { error: { code: 'constructor', message: 'Odd.' } }).code).toBe('internal_error')
})

test.each(['', '<html>502</html>', 'null', '[]', '{"error":"text"}', '{"error":{"message":5}}'])(
  'a body that is not from infer is reported as such: %s',
  body => {
    expect(refuse(502, body).message).toBe(
      `${url} answered with status 502 and no error message. Is it an infer server?`,
    )
    expect(errorInBody(body)).toBeUndefined()
  },
)

test('an error inside a stream has no status or headers', () => {
  const failure = serverRefusal(
    url,
    '{"error":{"code":"worker_error","message":"Engine exited.","request_id":"req_1"}}',
  )
  expect(failure).toMatchObject({
    code: 'worker_error',
    message: 'Engine exited.',
    facts: { request_id: 'req_1' },
  })
})
