import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { openReader } from '../../_sse.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ limits: { streams_per_token: 2, streams_per_organization: 3 } })
})
afterAll(() => app[Symbol.asyncDispose]())

const makeToken = async (): Promise<string> => {
  const body = { name: 'second', scopes: ['user:read', 'admin:read'] }
  const made = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, { body })
  return ((await made.json()) as { secret: string }).secret
}
const refusal = async (path: string, token: string): Promise<unknown[]> => {
  const response = await app.fetch(path, { token })
  const { error } = (await response.json()) as { error: { code: string; message: string; limit: string } }
  return [response.status, error.code, error.limit, error.message, Number(response.headers.get('retry-after')) > 0]
}
const ofToken = (name: string) => [
  429,
  'rate_limit',
  'limits.streams_per_token',
  `The token '${name}' has 2 event streams open, which is its limit. Close one, or raise limits.streams_per_token in infer.yaml.`,
  true,
]

test('the open streams of a token and of an organization are limited', async () => {
  const second = await makeToken()
  const events = await openReader(app, '/api/events')
  using logs = await openReader(app, '/api/system/logs?follow=true')
  expect([events.status, logs.status]).toEqual([200, 200])
  expect(await refusal('/api/events', app.secret)).toEqual(ofToken('root'))
  expect(await refusal('/api/system/logs?follow=true', app.secret)).toEqual(ofToken('root'))

  using other = await openReader(app, '/api/events', { authorization: `Bearer ${second}` })
  expect(other.status).toBe(200)
  expect(await refusal('/api/events', second)).toEqual([
    429,
    'rate_limit',
    'limits.streams_per_organization',
    "The organization 'default' has 3 event streams open, which is its limit. Close one, or raise limits.streams_per_organization in infer.yaml.",
    true,
  ])
  const { secret } = await makeOrganization(app)
  using stranger = await openReader(app, '/api/events', { authorization: `Bearer ${secret}` })
  expect(stranger.status).toBe(200)

  events.cut()
  await vi.waitFor(async () => {
    using again = await openReader(app, '/api/events', { authorization: `Bearer ${second}` })
    expect(again.status).toBe(200)
  }, 20_000)
})
