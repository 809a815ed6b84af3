import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLog } from '../../core/log.ts'
import { Config } from '../../core/models/config.ts'
import { routeTable } from '../../server/routes.ts'
import { openServer } from '../../server/server.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

const routes = routeTable()

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake'), fakeModel('org/model', [], { slug: 'org/model' })] })
})
afterAll(() => app[Symbol.asyncDispose]())

const requestId = /^req_[0-9A-Z]{26}$/
const sorted = (names: Iterable<string>) => [...names].toSorted((a, b) => a.localeCompare(b))
async function ask(path: string, options: Parameters<TestApp['fetch']>[1] = {}) {
  const response = await app.fetch(path, options)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Sends bytes to the server and returns its answer until it closes. */
function raw(bytes: string, url = app.url): Promise<{ status: number; head: string; body: string }> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (data: Buffer) => {
      text += data.toString('latin1')
      const [head = '', ...rest] = text.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      const body = rest.join('\r\n\r\n')
      if (rest.length === 0 || (body.length < length && !bytes.startsWith('HEAD'))) return
      socket.destroy()
      resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), head: head.toLowerCase(), body })
    })
    socket.once('error', reject)
  })
}

describe('health', () => {
  test.each([
    ['/livez', 'ok\n'],
    ['/healthz', 'ok\n'],
    ['/readyz', 'ready\n'],
    ['/readyz/?verbose=1', 'ready\n'],
  ])('%s needs no token', async (path, says) => {
    const { status, text, headers } = await ask(path, { token: null })
    expect([status, text, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      200,
      says,
      'text/plain; charset=utf-8',
      'no-store',
    ])
  })

  test('before the store is open the process is alive and not ready', async () => {
    const server = await openServer({ config: Config.parse({ listen: '127.0.0.1:0' }), log: openLog('error') })
    for (const path of ['/livez', '/livez?x=1', '/healthz']) {
      const alive = await fetch(server.url + path)
      expect([path, alive.status, await alive.text()]).toEqual([path, 200, 'ok\n'])
      expect(alive.headers.get('x-request-id')).toMatch(requestId)
    }
    for (const path of ['/readyz', '/metrics', '/std/v1/models', '/nowhere', '/docs']) {
      const refused = await fetch(server.url + path, { headers: { 'x-client-request-id': 'mine' } })
      expect([path, refused.status]).toEqual([path, 503])
      expect(refused.headers.get('retry-after')).toBe('1')
      expect(refused.headers.get('x-request-id')).toMatch(requestId)
      expect(refused.headers.get('x-client-request-id')).toBe('mine')
    }
    await server.drain(0)
  })
})

test('a connection closes after its thousandth answer, and that answer says so', async () => {
  const limits = { keep_alive_timeout: '1h' }
  const server = await openServer({ config: Config.parse({ listen: '127.0.0.1:0', limits }), log: openLog('error') })
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(1_000))
  let text = ''
  for await (const data of socket) text += (data as Buffer).toString('latin1')
  const answers = text.split(/(?=HTTP\/1\.1 200)/)
  expect(answers).toHaveLength(1_000)
  expect(answers.filter(answer => /^connection: close\r$/im.test(answer))).toEqual([answers.at(-1)])
  await server.drain(0)
})

describe('/metrics', () => {
  test('has the documented metrics', async () => {
    expect((await app.fetch('/std/v1/embeddings', { body: { model: 'fake', input: 'a' } })).status).toBe(200)
    const { status, text, headers } = await ask('/metrics', { token: null })
    expect([status, headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/plain; version=0\.0\.4/)])
    for (const state of ['pending', 'processing', 'completed', 'failed', 'cancelled'])
      expect(text).toMatch(new RegExp(`^infer_jobs\\{state="${state}"\\} \\d+$`, 'm'))
    for (const name of [
      'infer_ledger_rows_total',
      'infer_late_results_total',
      'infer_store_writable',
      'infer_store_commits_total',
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'process_open_fds',
      'nodejs_eventloop_lag_seconds',
      'nodejs_eventloop_lag_p99_seconds',
    ])
      expect(text, name).toMatch(new RegExp(`^${name} [\\d.e+-]+$`, 'm'))
    expect(text).toMatch(/^infer_engine_starts_total\{model="fake"\} 1$/m)
    expect(text).toMatch(/^infer_engine_failures_total\{model="fake"\} 0$/m)
    expect(text).toMatch(/^infer_device_memory_bytes\{device="cpu",kind="total"\} \d+$/m)
    expect(text).toMatch(/^infer_http_requests_total\{route="POST \/std\/v1\/embeddings",status="200"\} 1$/m)
    expect(text).not.toContain(app.secret)
  })

  test('has durations and token counts', async () => {
    const body = { model: 'fake', stream: true, messages: [{ role: 'user', content: 'Hello there, how are you?' }] }
    const stream = await app.fetch('/std/v1/chat/completions', { body })
    await stream.text()
    const numberOf = (text: string, name: string) =>
      Number(new RegExp(`^${name} ([\\d.e+-]+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
    const { text } = await ask('/metrics', { token: null })
    const of = (name: string) => numberOf(text, `${name}\\{model="fake"\\}`)
    for (const name of ['queue_wait', 'time_to_first_token', 'inter_token_latency', 'model_load'])
      expect([name, of(`infer_${name}_seconds_count`) > 0]).toEqual([name, true])
    expect(of('infer_model_load_seconds_sum')).toBeGreaterThan(0)
    expect(of('infer_time_to_first_token_seconds_count')).toBe(1)
    expect(numberOf(text, 'infer_tokens_total\\{model="fake",kind="output"\\}')).toBeGreaterThan(1)
    const status = (await (await app.fetch('/api/system/status')).json()) as { models: Record<string, unknown>[] }
    expect(status.models.find(({ model_id }) => model_id === 'fake')).toMatchObject({
      queue_wait_ms: expect.any(Number),
      // The first request waited for the load, and no order would have spared it that.
      waits: { queue_ms: expect.any(Number), reference_queue_ms: expect.any(Number) },
      time_to_first_token_ms: expect.any(Number),
      inter_token_latency_ms: expect.any(Number),
      load_ms: expect.any(Number),
    })
  })

  test.each<[string, Record<string, string>, 'none' | 'user' | 'root' | 'wrong', number]>([
    ['from this machine without a token', {}, 'none', 200],
    ['from this machine with one', {}, 'root', 200],
    ['through a proxy without a token', { 'x-forwarded-for': '10.0.0.1' }, 'none', 401],
    ['through a proxy that says it otherwise', { forwarded: 'for=10.0.0.1' }, 'none', 401],
    ['through a proxy that names no address', { 'x-forwarded-for': '' }, 'none', 401],
    ['through a proxy with a token that may', { 'x-forwarded-for': '10.0.0.1' }, 'root', 200],
    ['through a proxy with one that may not', { 'x-forwarded-for': '10.0.0.1' }, 'user', 403],
    ['with a token that may not, though it needs none', {}, 'user', 403],
    ['with a wrong token', {}, 'wrong', 401],
    ['from a page of another site in a browser here', { 'sec-fetch-site': 'cross-site' }, 'none', 401],
  ])('%s: %o %s → %i', async (_, headers, who, status) => {
    const made = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, { body: { name: 'user' } })
    const { secret } = (await made.json()) as { secret: string }
    const token = { none: null, user: secret, root: app.secret, wrong: 'sk-infer-x' }[who]
    const answer = await ask('/metrics', { token, headers })
    expect(answer.status).toBe(status)
    expect(answer.text.includes('infer_jobs')).toBe(status === 200)
  })
})

describe('the reference', () => {
  const built = existsSync(join(import.meta.dirname, '..', '..', 'dist', 'assets', 'docs', 'scalar.js'))

  test('is a page that may load and call nothing but this server', async () => {
    for (const path of ['/docs', '/docs/']) {
      const { status, text, headers } = await ask(path, { token: null })
      expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
      const policy = new Map(
        headers
          .get('content-security-policy')!
          .split(';')
          .map(directive => directive.trim().split(' '))
          .map(([name, ...sources]) => [name!, sources]),
      )
      expect(policy.get('default-src')).toEqual(["'self'"])
      expect(policy.get('connect-src')).toEqual(["'self'"])
      expect(policy.get('frame-ancestors')).toEqual(["'none'"])
      expect(policy.get('base-uri')).toEqual(["'none'"])
      expect(policy.get('form-action')).toEqual(["'none'"])
      expect(policy.get('script-src')).not.toContain("'unsafe-inline'")
      for (const source of [...policy.values()].flat()) expect(source).toMatch(/^('[a-z-]+'|data:|blob:)$/)
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(text).not.toMatch(/https?:\/\/|<script>|\son\w+=/)
      const named = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, to]) => to!)
      for (const to of named) expect(to).toMatch(/^(\/docs\/|\/console\/$|data:)/)
      expect(named).toContain('/docs/guides')
    }
  })

  test.skipIf(!built)('loads its program from this server', async () => {
    const { status, text, headers } = await ask('/docs/scalar.js', { token: null })
    expect([status, headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
    expect(text.length).toBeGreaterThan(1_000_000)
    expect(Number(headers.get('content-length'))).toBe(Buffer.byteLength(text))
    const start = await ask('/docs/start.js', { token: null })
    expect([start.status, start.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
    expect(start.text).toContain("url: '/openapi.json'")
    expect(start.text).not.toMatch(/https?:\/\//)
  })

  test.each(['/openapi.json', '/docs/start.js', '/docs/scalar.js', '/livez', '/readyz'])(
    '%s refuses subresource requests of other sites',
    async path => {
      const foreign = await ask(path, { token: null, headers: { 'sec-fetch-site': 'cross-site' } })
      expect(foreign.text).not.toMatch(/openapi|Scalar|ok|ready/)
      for (const site of ['same-origin', 'none'])
        if (path !== '/docs/scalar.js' || built)
          expect((await ask(path, { token: null, headers: { 'sec-fetch-site': site } })).text.length).toBeGreaterThan(1)
    },
  )

  test('a link from another site works', async () => {
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    expect((await ask('/docs', { token: null, headers })).text).toContain('reference')
    const framed = { ...headers, 'sec-fetch-dest': 'iframe' }
    expect((await ask('/docs', { token: null, headers: framed })).text).not.toContain('reference')
  })
})

describe('methods', () => {
  const paths = new Map<string, Set<string>>()
  for (const { method, path, aliases = [] } of routes)
    for (const one of [path, ...aliases]) paths.set(one, (paths.get(one) ?? new Set()).add(method))
  const filled = (path: string) => path.replace(':organization', app.organizationId).replace(/(\*\*)?:id/, 'x')

  test('a wrong one: 405, with the allowed ones', async () => {
    for (const [path, methods] of paths) {
      const allowed = methods.has('GET') ? [...methods, 'HEAD'] : [...methods]
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter(one => !methods.has(one))) {
        const { status, headers, text } = await ask(filled(path), { method, token: null })
        expect([method, path, status]).toEqual([method, path, 405])
        expect(sorted(headers.get('allow')!.split(', '))).toEqual(sorted(allowed))
        expect(text).toContain('"code":"method_not_allowed"')
      }
    }
  })

  test('HEAD is GET without the body', async () => {
    for (const path of ['/livez', '/docs', '/openapi.json', '/std/v1/models', '/api/me', '/api/jobs/x']) {
      const get = await ask(path)
      const head = await ask(path, { method: 'HEAD' })
      expect([path, head.status, head.text]).toEqual([path, get.status, ''])
      expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'))
      expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
    }
  })

  test('OPTIONS * allows nothing', async () => {
    const { status } = await raw('OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n')
    expect([404, 405, 400]).toContain(status)
  })

  test('no other origin is allowed', async () => {
    for (const method of ['GET', 'OPTIONS', 'POST'])
      for (const path of ['/std/v1/models', '/api/jobs', '/docs', '/nowhere']) {
        const { headers } = await ask(path, {
          method,
          headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
        })
        expect([...headers.keys()].filter(name => name.startsWith('access-control'))).toEqual([])
      }
  })
})

describe('paths', () => {
  test.each([
    ['/nowhere', 'GET'],
    ['/std/v1/chat/completion', 'POST'],
    ['/std/v2/models', 'GET'],
    ['/api', 'GET'],
    ['/%2e%2e/etc/passwd', 'GET'],
    ['/api/jobs/x/y/z', 'DELETE'],
  ])('%s is unknown for %s: 404 that says so, with or without a token', async (path, method) => {
    for (const token of [null, app.secret]) {
      const { status, text, headers } = await ask(path, { method, token, headers: { 'x-client-request-id': 'a.b:c' } })
      const { error } = JSON.parse(text) as { error: Record<string, string> }
      expect(status).toBe(404)
      expect(error).toMatchObject({ code: 'unknown_url', type: 'not_found_error', param: null })
      expect(error.message).toContain(`Invalid URL (${method} ${new URL(app.url + path).pathname})`)
      expect(error.request_id).toBe(headers.get('x-request-id'))
      expect(headers.get('x-client-request-id')).toBe('a.b:c')
    }
  })

  test('a long or strange path is not returned whole', async () => {
    const { status, text } = await ask(`/${'x'.repeat(5000)}`)
    expect(status).toBe(404)
    expect(text.length).toBeLessThan(600)
    const { body, head } = await raw(`GET /<script>"\x01 HTTP/1.1\r\nhost: localhost\r\n\r\n`)
    expect(head).toContain('content-type: application/json')
    expect(() => JSON.parse(body) as unknown).not.toThrow()
  })

  test.each([
    ['/std/v1/models/', 200],
    ['//std//v1///models', 200],
    ['/v1/models?task=std/embeddings', 200],
    ['/v1/models?task=', 400],
    ['/std/v1/models/org/model', 200],
    ['/std/v1/models/org%2Fmodel', 200],
    ['/std/v1/models/org%2fmodel/', 200],
    ['/v1/models/org%2Fmodel', 200],
    ['/std/v1/models/org%252Fmodel', 404],
    ['/std/v1/models/org', 404],
    ['/std/v1/models/%00', 404],
    ['/std/v1/models/%F0%9F%92%A9', 404],
    ['/STD/v1/models', 404],
  ])('%s: %i', async (path, status) => {
    const answer = await ask(path)
    expect(answer.status, answer.text).toBe(status)
    if (/org(%2f|\/)model/i.test(path)) expect(answer.text).toContain('"id":"org/model"')
  })

  test('a model is called by its whole id', async () => {
    const { status, text } = await ask('/std/v1/chat/completions', {
      body: { model: 'org/model', messages: [{ role: 'user', content: 'Hello' }] },
    })
    expect([status, (JSON.parse(text) as { model: string }).model]).toEqual([200, 'org/model'])
  })
})

describe('x-request-id', () => {
  test('is on every answer, unique, and the same as in the body of an error', async () => {
    const chat = { model: 'fake', messages: [{ role: 'user', content: 'Hello' }] }
    const all = await Promise.all([
      ask('/livez'),
      ask('/docs'),
      ask('/std/v1/models'),
      ask('/nowhere'),
      ask('/api/me', { token: null }),
      ask('/api/me', { token: 'sk-x' }),
      ask('/api/organizations/org_x/tokens'),
      ask('/api/jobs/x'),
      ask('/api/jobs', { body: {} }),
      ask('/api/jobs', { body: '{' }),
      ask('/api/jobs', { method: 'DELETE' }),
      ask('/slug/requests/batch', { body: `"${'x'.repeat(2 << 20)}"` }),
      ask('/api/jobs', { body: 'a', headers: { 'content-type': 'text/plain' } }),
      ask('/api/jobs', { body: { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'a' } } }),
      ask('/std/v1/chat/completions', { body: chat }),
      ask('/std/v1/chat/completions', { body: { ...chat, stream: true } }),
      ask('/std/v1/chat/completions', { body: { ...chat, model: 'none' } }),
      ask('/std/v1/models', { method: 'HEAD' }),
    ])
    expect(sorted(new Set(all.map(({ status }) => String(status))))).toEqual([
      '200',
      '202',
      '400',
      '401',
      '404',
      '405',
      '413',
      '415',
    ])
    for (const { headers, text, status } of all) {
      expect(headers.get('x-request-id'), text).toMatch(requestId)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      if (status >= 400)
        expect((JSON.parse(text) as { error: { request_id: string } }).error.request_id).toBe(
          headers.get('x-request-id'),
        )
    }
    expect(new Set(all.map(({ headers }) => headers.get('x-request-id'))).size).toBe(all.length)
  })

  test.each([
    ['another host', 'GET /livez HTTP/1.1\r\nhost: evil.example\r\n\r\n', 421],
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['headers past 16 KiB', `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    ['a malformed escape', 'GET /api/jobs/%zz HTTP/1.1\r\nhost: localhost\r\n\r\n', 400],
  ])('is also on answers before routing: %s', async (_, bytes, status) => {
    const { head, body, status: got } = await raw(bytes)
    expect(got).toBe(status)
    const id = /^x-request-id: (req_\w+)$/m.exec(head)?.[1]
    expect(id?.toUpperCase()).toBe(
      (JSON.parse(body) as { error: { request_id: string } }).error.request_id.toUpperCase(),
    )
  })

  test.each<[string, string | null]>([
    ['mine-1.2:3_x', 'mine-1.2:3_x'],
    ['x'.repeat(128), 'x'.repeat(128)],
    ['x'.repeat(129), null],
    ['two words', null],
    ['a"b', null],
    ['', null],
  ])("keeps the client's own, %j, beside it: %j", async (given, back) => {
    for (const path of ['/livez', '/api/me', '/nowhere', '/api/jobs'] as const) {
      const { headers } = await ask(path, { headers: { 'x-client-request-id': given } })
      expect([path, headers.get('x-client-request-id')]).toEqual([path, back])
      expect(headers.get('x-request-id')).toMatch(requestId)
    }
  })
})

test('metrics need a token behind a proxy, and with `metrics: token` always', async () => {
  const status = async (at: TestApp, headers: Record<string, string>, token: string | null = null) =>
    (await at.fetch('/metrics', { headers, token })).status
  expect(await status(app, {})).toBe(200)
  expect(await status(app, { 'x-real-ip': '10.0.0.1' })).toBe(401)
  await using strict = await startApp({ metrics: 'token' })
  expect(await status(strict, {})).toBe(401)
  expect(await status(strict, {}, strict.secret)).toBe(200)
})
