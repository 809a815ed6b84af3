import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, type TestApp } from '../_app.ts'
import { type Answer, ask, chat, job, organizationWith, startSpecified } from './_specification.ts'

/** Section 7 of the specification: the envelope of native errors, and each row of the table. */

let app: TestApp
beforeAll(async () => {
  app = await startSpecified({
    models: [
      fakeModel('fake'),
      fakeModel('priced', [], { price: { input_per_million_tokens: 1_000 } }),
      fakeModel('loading', ['--ready-after', '600000'], { dispatch_wait_ms: '100ms' }),
      fakeModel('busy', [], { concurrency: 1, replicas: { min: 1, max: 1 }, dispatch_wait_ms: '100ms' }),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

const say = (model: string, content = 'Hi', token?: string): Promise<Answer> =>
  ask(app, 'POST', '/std/v1/chat/completions', { model, messages: [{ role: 'user', content }] }, token)

test('envelope for all native errors: error.code, error.message, error.type', async () => {
  const { body } = await ask(app, 'GET', '/api/jobs/job_absent')
  expect(body.error).toMatchObject({
    code: expect.any(String) as string,
    message: expect.any(String) as string,
    type: expect.any(String) as string,
  })
})

test('401: missing, invalid, deleted or expired token; fix the token', async () => {
  const { status, headers } = await ask(app, 'GET', '/api/me', undefined, 'wrong')
  expect([status, headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('Bearer')])
})

describe('403', () => {
  test('scope missing', async () => {
    const { secret } = await organizationWith(app, {}, { scopes: ['user:read'] })
    expect((await ask(app, 'POST', '/api/jobs', job, secret)).status).toBe(403)
  })
  test('region restricted', async () => {
    const { secret } = await organizationWith(app, { region: 'US' })
    expect((await ask(app, 'POST', '/api/jobs', job, secret)).body.error.code).toBe('region_restricted')
  })
})

test('429 rate_limit, rate_limit_error: request rate exceeded for token or organization; read `Retry-After` (seconds) and wait', async () => {
  const { secret } = await organizationWith(app, { requestsPerMinute: 1 })
  expect((await ask(app, 'GET', '/api/me', undefined, secret)).status).toBe(200)
  const { status, body, headers } = await ask(app, 'GET', '/api/me', undefined, secret)
  expect([status, body.error.code, body.error.type]).toEqual([429, 'rate_limit', 'rate_limit_error'])
  const seconds = Number(headers.get('retry-after'))
  expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60).toBe(true)
})

describe('429 quota_exceeded: monthly usage spend limit reached', () => {
  test('do not retry until the limit is raised or the billing period resets', async () => {
    const { secret } = await organizationWith(app, { monthlySpendLimit: 0 })
    const { status, body, headers } = await say('priced', 'Hi', secret)
    expect([status, body.error.code, body.error.type]).toEqual([429, 'quota_exceeded', 'insufficient_quota'])
    expect([headers.get('x-should-retry'), headers.get('retry-after')]).toEqual(['false', null])
    const reset = new Date(body.error.reset_at * 1000)
    expect([reset.getUTCDate(), reset.getUTCHours(), reset.getTime() > Date.now()]).toEqual([1, 0, true])
    expect(body.error.message).toContain(reset.toISOString().slice(0, 10))
  })
  test('a raised limit lets requests pass again', async () => {
    const { secret, organizationId } = await organizationWith(app, { monthlySpendLimit: 0 })
    expect((await say('priced', 'Hi', secret)).status).toBe(429)
    const raised = await ask(app, 'PATCH', `/api/organizations/${organizationId}`, {
      limits: { monthly_spend_limit: 100 },
    })
    expect(raised.status).toBe(200)
    expect((await say('priced', 'Hi', secret)).status).toBe(200)
  })
})

test('503 model_warming_up: model weights loading; retry after 30-60 s', async () => {
  const { status, body, headers } = await say('loading')
  expect([status, body.error.code]).toEqual([503, 'model_warming_up'])
  expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(30)
  expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60)
})

test('503: for sync requests the connection may be held open when the model has `dispatch_wait_ms` configured', async () => {
  const began = performance.now()
  await say('loading')
  expect(performance.now() - began).toBeGreaterThanOrEqual(95)
  const { body } = await ask(app, 'GET', '/api/model-status')
  expect(body.models.find((one: { model_id: string }) => one.model_id === 'loading').dispatch_wait_ms).toBe(100)
})

test('503 no_capacity: no worker available; retry after 10-30 s', async () => {
  const held = new AbortController()
  const body = { model: 'busy', stream: true, messages: [{ role: 'user', content: 'mode:slow,ms=600000' }] }
  const first = app.fetch('/std/v1/chat/completions', { body, signal: held.signal }).catch(() => undefined)
  let refused = await say('busy')
  while (refused.status === 200 || refused.body.error.code === 'model_warming_up') refused = await say('busy')
  expect([refused.status, refused.body.error.code]).toEqual([503, 'no_capacity'])
  const seconds = Number(refused.headers.get('retry-after'))
  expect(seconds >= 10 && seconds <= 30).toBe(true)
  held.abort()
  await first
})

test('not_found, not_found_error: resource missing (example: job)', async () => {
  const { status, body } = await ask(app, 'GET', '/api/jobs/job_absent')
  expect([status, body.error.code, body.error.type]).toEqual([404, 'not_found', 'not_found_error'])
})

test('errors of the compatible endpoints use the error format of that style', async () => {
  const { body } = await ask(app, 'POST', '/std/v1/chat/completions', { ...chat, model: 'absent' })
  expect(Object.keys(body.error)).toEqual(expect.arrayContaining(['message', 'type', 'param', 'code']))
})
