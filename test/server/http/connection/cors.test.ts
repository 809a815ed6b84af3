import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLog } from '../../../../core/log.ts'
import { Config, parseConfig } from '../../../../core/models/config.ts'
import { openServer } from '../../../../server/server.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

const page = 'https://app.example.com'
let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')], cors: { origins: [page, 'http://localhost:5173'] } })
})
afterAll(() => app[Symbol.asyncDispose]())

const corsOf = (response: Response) =>
  Object.fromEntries([...response.headers].filter(([name]) => name.startsWith('access-control-')))
const allowed = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': '*',
})
const preflight = (
  path: string,
  origin: string,
  { headers = 'authorization,x-stainless-lang', ...more }: Record<string, string> = {},
  at = app,
) =>
  at.fetch(path, {
    method: 'OPTIONS',
    token: null,
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': headers,
      ...more,
    },
  })

test.each([
  '/std/v1/chat/completions',
  '/v1/chat/completions',
  '/v1/models/some/model',
  '/rerank',
  '/slug/fake/text-to-image',
  '/fal/queue/fake',
  '/fal/proxy',
  '/api/jobs',
  '/api//jobs/',
  '/std/v1/no/such/route',
])('a preflight for %s is answered without a token', async path => {
  const response = await preflight(path, page)
  expect([response.status, await response.text()]).toEqual([204, ''])
  expect(corsOf(response)).toEqual({
    'access-control-allow-origin': page,
    'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': 'authorization,x-stainless-lang',
    'access-control-max-age': '7200',
  })
  expect(response.headers.get('vary')).toMatch(/^origin/i)
})

test.each([
  ['another site', 'https://evil.example.com'],
  ['the same name with another scheme', 'http://app.example.com'],
  ['another port', 'https://app.example.com:8443'],
  ['a name that begins like a listed one', 'https://app.example.com.evil.io'],
  ['a page without an origin', 'null'],
])('a preflight from %s is refused with the setting that would allow it', async (_, origin) => {
  const response = await preflight('/std/v1/models', origin)
  expect([response.status, corsOf(response)]).toEqual([403, {}])
  expect(await response.json()).toMatchObject({
    error: { code: 'origin_not_allowed', message: expect.stringContaining('cors.origins') as string },
  })
})

test.each(['/', '/docs', '/metrics', '/livez', '/openapi.json', '/standard'])('%s is not allowed', async path => {
  const response = await preflight(path, page)
  expect([response.status, corsOf(response)]).toEqual([path === '/standard' ? 404 : 405, {}])
  expect(corsOf(await app.fetch(path, { headers: { origin: page } }))).toEqual({})
})

test.each<[what: string, path: string, options: Parameters<TestApp['fetch']>[1], status: number]>([
  ['an answer', '/std/v1/models', {}, 200],
  ['a refused token', '/std/v1/models', { token: 'sk-wrong' }, 401],
  ['a missing token', '/api/me', { token: null }, 401],
  ['an unknown route', '/api/nothing', {}, 404],
  ['a wrong method', '/api/me', { method: 'PATCH' }, 405],
  ['an invalid body', '/std/v1/chat/completions', { body: '{' }, 400],
  [
    'a stream',
    '/std/v1/chat/completions',
    { body: { model: 'fake', stream: true, messages: [{ role: 'user', content: 'a' }] } },
    200,
  ],
])('%s can be read by a listed page, headers included', async (_, path, options, status) => {
  const response = await app.fetch(path, { ...options, headers: { origin: page } })
  expect([response.status, corsOf(response)]).toEqual([status, allowed(page)])
  expect(response.headers.get('vary')).toMatch(/origin/i)
  await response.body?.cancel()
  const foreign = await app.fetch(path, { ...options, headers: { origin: 'https://evil.example.com' } })
  expect([foreign.status, corsOf(foreign)]).toEqual([status, {}])
  await foreign.body?.cancel()
})

test('a public page may request a private address when the browser asks for permission', async () => {
  const response = await preflight('/std/v1/models', page, { 'access-control-request-private-network': 'true' })
  expect(response.headers.get('access-control-allow-private-network')).toBe('true')
})

test('invalid header names are not repeated', async () => {
  const response = await preflight('/std/v1/models', page, { headers: 'a"b' })
  expect(response.headers.get('access-control-allow-headers')).toBe('authorization, content-type')
})

test('a wrong Host is refused first', async () => {
  const { hostname, port } = new URL(app.url)
  expect(hostname).toBe('127.0.0.1')
  const { request } = await import('node:http')
  const status = await new Promise<number | undefined>((resolve, reject) => {
    request(
      {
        host: hostname,
        port,
        path: '/std/v1/models',
        method: 'OPTIONS',
        headers: { host: 'evil.example.com', origin: page, 'access-control-request-method': 'GET' },
      },
      response => {
        response.resume()
        resolve(response.statusCode)
      },
    )
      .on('error', reject)
      .end()
  })
  expect(status).toBe(421)
})

describe('without cors in infer.yaml', () => {
  test('only files are allowed', async () => {
    await using closed = await startApp()
    const refused = await preflight('/std/v1/models', page, {}, closed)
    expect([refused.status, corsOf(refused)]).toEqual([403, {}])
    expect(corsOf(await closed.fetch('/std/v1/models', { headers: { origin: page } }))).toEqual({})
    const file = await preflight('/files/file-1/a.png', page, {}, closed)
    expect([file.status, file.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
  })
})

test('a star allows every page to use the API', async () => {
  await using open = await startApp({ cors: { origins: ['*'] } })
  const response = await open.fetch('/std/v1/models', { headers: { origin: 'null' } })
  expect([response.status, corsOf(response)]).toEqual([200, allowed('*')])
  expect((await preflight('/std/v1/models', 'https://any.example.com', {}, open)).status).toBe(204)
})

test('a page can read that the server is starting', async () => {
  const config = Config.parse({ listen: '127.0.0.1:0', cors: { origins: [page] } })
  const server = await openServer({ config, log: openLog('error') })
  const response = await fetch(`${server.url}/std/v1/models`, { headers: { origin: page } })
  expect([response.status, corsOf(response)]).toEqual([503, allowed(page)])
  await server.drain(0)
})

test.each([
  ['https://example.com', true],
  ['http://localhost:5173', true],
  ['HTTPS://Example.com', true],
  ['tauri://localhost', true],
  ['chrome-extension://abcdefgh', true],
  ['*', true],
  ['https://example.com/', false],
  ['https://example.com/path', false],
  ['example.com', false],
  ['https://*.example.com', false],
  ['null', false],
  ['', false],
])('the origin %j in infer.yaml: %j', (origin, right) => {
  const read = () => parseConfig(`cors: {origins: [${JSON.stringify(origin)}]}`, 'infer.yaml')
  if (right) expect(read).not.toThrow()
  else expect(read).toThrow(/'cors\.origins\[0\]'.*https:\/\/app\.example\.com/)
})
