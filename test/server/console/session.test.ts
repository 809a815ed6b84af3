import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startApp, type TestApp } from '../../_app.ts'

let app: TestApp
let port: string
beforeAll(async () => {
  app = await startApp()
  port = new URL(app.url).port
})
afterAll(() => app?.[Symbol.asyncDispose]())

/** What a browser sends with a request of the console's own pages. */
const ownPage = { 'x-infer-console': '1', 'sec-fetch-site': 'same-origin' }

const send = (
  path: string,
  headers: Record<string, string>,
  { method = 'GET', body }: { method?: string; body?: unknown } = {},
) => app.fetch(path, { method, token: null, headers, ...(body === undefined ? {} : { body }) })

/** The cookie of a new session, as a browser sends it back. */
async function signIn(token = app.secret, headers: Record<string, string> = {}): Promise<string> {
  const answer = await send('/api/session', { ...ownPage, ...headers }, { method: 'POST', body: { token } })
  expect(answer.status).toBe(201)
  return answer.headers.get('set-cookie')!.split(';')[0]!
}

async function createToken(body: object, organization = app.organizationId) {
  const answer = await app.fetch(`/api/organizations/${organization}/tokens`, { body: { name: 'test', ...body } })
  expect(answer.status).toBe(201)
  return (await answer.json()) as { token: { id: string }; secret: string }
}

/** Reads the session, or begins one with `body`, with a Host header that fetch does not send. */
const askAs = (host: string, { url }: TestApp, headers: Record<string, string>, body?: object) =>
  new Promise<{ status: number; cookie: string | undefined }>((resolve, reject) => {
    const sent = request(`${url}/api/session`, {
      method: body ? 'POST' : 'GET',
      headers: { ...headers, host, ...(body ? { 'content-type': 'application/json' } : {}) },
    })
    sent.once('error', reject)
    sent.once('response', answer => {
      answer.resume()
      resolve({ status: answer.statusCode!, cookie: answer.headers['set-cookie']?.[0] })
    })
    sent.end(body && JSON.stringify(body))
  })

const codeOf = async (answer: Response) => ((await answer.json()) as { error: { code: string } }).error.code

describe('a session', () => {
  test('begins with a token, tells who is signed in, and ends by signing out', async () => {
    const answer = await send('/api/session', ownPage, { method: 'POST', body: { token: app.secret } })
    const header = answer.headers.get('set-cookie')!
    expect(header).toMatch(new RegExp(`^infer_session_${port}=[\\w-]{43}; HttpOnly; SameSite=Strict; Path=/$`))
    const cookie = header.split(';')[0]!
    const session = (await answer.json()) as { expires_at: number }
    expect(session).toMatchObject({
      token: { name: 'root' },
      organization: { id: app.organizationId, name: 'default' },
      scopes: ['user:read', 'user:write', 'admin:read', 'admin:write'],
      owns_machine: true,
    })
    expect(session.expires_at - Date.now() / 1_000).toBeGreaterThan(12 * 3_600 - 60)
    expect(await (await send('/api/session', { ...ownPage, cookie })).json()).toMatchObject({ token: { name: 'root' } })
    expect((await send('/api/jobs', { ...ownPage, cookie })).status).toBe(200)

    const ended = await send('/api/session', { ...ownPage, cookie }, { method: 'DELETE' })
    expect(ended.headers.get('set-cookie')).toMatch(/^infer_session_\d+=; .*Max-Age=0/)
    expect((await send('/api/session', { ...ownPage, cookie })).status).toBe(401)
    expect((await send('/api/jobs', { ...ownPage, cookie })).status).toBe(401)
  })

  test('has the scopes of its token and no others', async () => {
    const { secret } = await createToken({ scopes: ['user:read'] })
    const cookie = await signIn(secret)
    expect((await send('/api/jobs', { ...ownPage, cookie })).status).toBe(200)
    const refused = await send('/api/system/logs', { ...ownPage, cookie })
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_scope'])
  })

  test('always has a new id, and ends the one that the browser had', async () => {
    const planted = await signIn()
    const cookie = await signIn(app.secret, { cookie: planted })
    expect(cookie).not.toBe(planted)
    expect((await send('/api/jobs', { ...ownPage, cookie: planted })).status).toBe(401)
    expect((await send('/api/jobs', { ...ownPage, cookie })).status).toBe(200)
  })

  test('ends with its token, and so do its open streams', async () => {
    const { token, secret } = await createToken({ scopes: ['user:read'] })
    const cookie = await signIn(secret)
    const stream = await send('/api/events', { ...ownPage, cookie })
    expect(stream.status).toBe(200)
    const read = stream.text()
    await app.fetch(`/api/organizations/${app.organizationId}/tokens/${token.id}/revoke`, { method: 'POST' })
    expect(await read).toContain('event: error')
    const refused = await send('/api/jobs', { ...ownPage, cookie })
    expect([refused.status, await codeOf(refused)]).toEqual([401, 'token_revoked'])
  })

  test('open streams end when a person signs out', async () => {
    const cookie = await signIn()
    const read = (await send('/api/events', { ...ownPage, cookie })).text()
    await send('/api/session', { ...ownPage, cookie }, { method: 'DELETE' })
    expect(await read).toContain('event: error')
  })

  test('works behind a proxy that ends TLS and is not trusted, at the host of public_url', async () => {
    await using proxied = await startApp({ public_url: 'https://gpu.example/' })
    const ask = (headers: Record<string, string>, body?: object) =>
      askAs('gpu.example', proxied, { ...ownPage, ...headers }, body)
    const begun = await ask({ origin: 'https://gpu.example' }, { token: proxied.secret })
    expect([begun.status, begun.cookie]).toEqual([201, expect.stringMatching(/^__Host-infer_session=.*; Secure$/)])
    const cookie = begun.cookie!.split(';')[0]!
    expect((await ask({ cookie })).status).toBe(200)
    expect((await ask({ origin: 'http://gpu.example' }, { token: proxied.secret })).status).toBe(403)
    // The same server without the proxy.
    const direct = await askAs('127.0.0.1', proxied, ownPage, { token: proxied.secret })
    expect([direct.status, direct.cookie]).toEqual([201, expect.not.stringContaining('Secure')])
  })

  test('ends with the time of its token, and while its organization is suspended', async () => {
    const created = await app.fetch('/api/organizations', { body: { name: 'other' } })
    const { id } = ((await created.json()) as { organization: { id: string } }).organization
    const cookie = await signIn((await createToken({ scopes: ['user:read'] }, id)).secret)
    expect((await send('/api/jobs', { ...ownPage, cookie })).status).toBe(200)
    await app.fetch(`/api/organizations/${id}/suspend`, { method: 'POST' })
    const suspended = await send('/api/jobs', { ...ownPage, cookie })
    expect([suspended.status, await codeOf(suspended)]).toEqual([403, 'organization_disabled'])

    const { token, secret } = await createToken({ scopes: ['user:read'] })
    const short = await signIn(secret)
    const path = `/api/organizations/${app.organizationId}/tokens/${token.id}/rotate`
    expect((await app.fetch(path, { body: { overlap_seconds: 0 } })).status).toBe(200)
    const expired = await send('/api/session', { ...ownPage, cookie: short })
    expect([expired.status, await codeOf(expired)]).toEqual([401, 'token_expired'])
  })

  test('is Secure and bound to the host behind TLS', async () => {
    await using proxied = await startApp({ trusted_proxies: ['127.0.0.1'], allowed_hosts: ['gpu.example'] })
    const headers = { ...ownPage, 'x-forwarded-proto': 'https', 'x-forwarded-host': 'gpu.example' }
    const answer = await proxied.fetch('/api/session', { token: null, headers, body: { token: proxied.secret } })
    expect(answer.status).toBe(201)
    expect(answer.headers.get('set-cookie')).toMatch(
      /^__Host-infer_session=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Secure$/,
    )
  })
})

describe('an attack', () => {
  const foreign: [string, Record<string, string>][] = [
    ['a page of another site', { 'x-infer-console': '1', 'sec-fetch-site': 'cross-site' }],
    ['a page on another port of this host', { 'x-infer-console': '1', 'sec-fetch-site': 'same-site' }],
    ['a link or a form', { 'sec-fetch-site': 'same-origin' }],
    ['an address typed by a person', { 'x-infer-console': '1', 'sec-fetch-site': 'none' }],
    ['a client that leaves Sec-Fetch-Site out', { 'x-infer-console': '1' }],
    ['another origin by name', { ...ownPage, origin: 'http://evil.example' }],
  ]

  test.each(foreign)('%s cannot use the cookie', async (_, headers) => {
    const cookie = await signIn()
    for (const [path, method] of [
      ['/api/jobs', 'GET'],
      ['/api/session', 'GET'],
      ['/api/events', 'GET'],
      ['/api/models/fake/unload', 'POST'],
    ] as const)
      expect((await send(path, { ...headers, cookie }, { method })).status, path).toBe(
        path === '/api/session' ? 403 : 401,
      )
  })

  test.each(foreign)('%s cannot sign a browser in or out', async (_, headers) => {
    const cookie = await signIn()
    const signedIn = await send('/api/session', headers, { method: 'POST', body: { token: app.secret } })
    expect([signedIn.status, await codeOf(signedIn), signedIn.headers.get('set-cookie')]).toEqual([
      403,
      'origin_not_allowed',
      null,
    ])
    expect((await send('/api/session', { ...headers, cookie }, { method: 'DELETE' })).status).toBe(403)
    expect((await send('/api/jobs', { ...ownPage, cookie })).status).toBe(200)
  })

  test('the id of a session is no API token, whatever header has it', async () => {
    const id = (await signIn()).split('=')[1]!
    for (const authorization of [`Bearer ${id}`, `Bearer session:${id}`, `Key ${id}`])
      expect((await send('/api/jobs', { ...ownPage, authorization })).status).toBe(401)
    expect((await send('/api/jobs', { ...ownPage, 'x-api-key': id })).status).toBe(401)
  })

  test('a token beside the cookie decides alone', async () => {
    const cookie = await signIn()
    const { secret } = await createToken({ scopes: ['user:read'] })
    const authorization = `Bearer ${secret}`
    expect((await send('/api/system/logs', { ...ownPage, cookie, authorization })).status).toBe(403)
    expect((await send('/api/jobs', { ...ownPage, cookie, authorization: 'Bearer sk-infer-wrong' })).status).toBe(401)
  })

  test('a link signs in once, and a guess never', async () => {
    const created = await app.fetch('/api/session/codes', { method: 'POST' })
    expect(created.status).toBe(201)
    const { code, url } = (await created.json()) as { code: string; url: string }
    expect(url).toBe(`${app.url}/console/sign-in#code=${code}`)
    const use = (code: string) => send('/api/session', ownPage, { method: 'POST', body: { code } })
    expect((await use(code.slice(0, -1))).status).toBe(401)
    expect((await use(code)).status).toBe(201)
    const again = await use(code)
    expect([again.status, await codeOf(again)]).toEqual([401, 'invalid_api_key'])
  })

  test('a code of a token that was revoked since signs nobody in', async () => {
    const { token, secret } = await createToken({ scopes: ['user:read'] })
    const created = await app.fetch('/api/session/codes', { method: 'POST', token: secret })
    const { code } = (await created.json()) as { code: string }
    await app.fetch(`/api/organizations/${app.organizationId}/tokens/${token.id}/revoke`, { method: 'POST' })
    const answer = await send('/api/session', ownPage, { method: 'POST', body: { code } })
    expect([answer.status, await codeOf(answer), answer.headers.get('set-cookie')]).toEqual([
      401,
      'token_revoked',
      null,
    ])
  })

  test('guesses of codes are slowed down as wrong tokens are, and right ones are not', async () => {
    await using guessed = await startApp()
    const use = (body: object) => guessed.fetch('/api/session', { token: null, headers: ownPage, body })
    const statuses: number[] = []
    for (let at = 0; at < 40; at++) statuses.push((await use({ code: `guess-${at}` })).status)
    expect([statuses[0], statuses.at(-1)]).toEqual([401, 429])
    expect((await use({ token: guessed.secret })).status).toBe(201)
  })

  test('a WebSocket has no header of the console, so it cannot use the cookie', async () => {
    const cookie = await signIn()
    const headers = { cookie, origin: app.url, 'sec-fetch-site': 'same-origin' }
    const socket = new WebSocket(`${app.url.replace('http', 'ws')}/std/v1/realtime?intent=transcription`, { headers })
    const status = await new Promise(resolve => {
      socket.once('unexpected-response', (_, response) => resolve(response.statusCode))
      socket.once('open', () => resolve('open'))
    })
    expect(status).toBe(401)
  })

  test('neither the log nor the database has what signs in', async () => {
    const id = (await signIn()).split('=')[1]!
    const { code } = (await (await app.fetch('/api/session/codes', { method: 'POST' })).json()) as { code: string }
    await send('/api/session', ownPage, { method: 'POST', body: { code } })
    const stored = readdirSync(app.dataDir, { recursive: true, encoding: 'utf8' })
      .map(name => join(app.dataDir, name))
      .filter(path => lstatSync(path).isFile() && !path.endsWith('root-token'))
    expect(stored.some(path => path.endsWith('.db-wal'))).toBe(true)
    for (const path of stored) {
      const bytes = readFileSync(path)
      for (const secret of [id, code, app.secret]) expect([path, bytes.includes(secret)]).toEqual([path, false])
    }
    expect(app.lines.filter(line => line.includes(id) || line.includes(code) || line.includes(app.secret))).toEqual([])
  })

  test('a page of an origin that cors.origins lists reads nothing with the cookie', async () => {
    await using opened = await startApp({ cors: { origins: ['https://app.example'] } })
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'GET' }
    const preflight = await opened.fetch('/api/jobs', { method: 'OPTIONS', token: null, headers })
    expect(preflight.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(preflight.headers.get('access-control-allow-credentials')).toBeNull()
    const begun = await opened.fetch('/api/session', { token: null, headers: ownPage, body: { token: opened.secret } })
    const cookie = begun.headers.get('set-cookie')!.split(';')[0]!
    const asked = { origin: 'https://app.example', cookie, 'x-infer-console': '1', 'sec-fetch-site': 'cross-site' }
    expect((await opened.fetch('/api/jobs', { token: null, headers: asked })).status).toBe(401)
  })

  test('neither frames nor scripts of others come into the pages', async () => {
    const page = await app.fetch('/console', { token: null })
    const policy = page.headers.get('content-security-policy')!
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("script-src 'self';")
    expect(policy).not.toContain('unsafe')
    expect(page.headers.get('x-frame-options')).toBe('DENY')
    const [first, second] = [
      policy,
      (await app.fetch('/console', { token: null })).headers.get('content-security-policy'),
    ]
    expect(first).not.toBe(second)
  })
})

test.each([
  ['/console', 'overview'],
  ['/console/jobs', 'jobs'],
  ['/console/jobs/job_1', 'jobs'],
  ['/console/constructor', undefined],
])('%s is sent with the addresses of the scripts of its page', async (path, name) => {
  const text = await (await app.fetch(path, { token: null })).text()
  const preloaded = [...text.matchAll(/modulepreload" href="\/console\/assets\/([a-z-]+)-[\w-]{8}\.js/g)].map(
    ([, one]) => one!,
  )
  const pages = ['overview', 'jobs', 'chat', 'models']
  expect(preloaded.filter(one => pages.includes(one))).toEqual(name === undefined ? [] : [name])
  // Six connections of a browser bring them in two rounds.
  expect(preloaded.length).toBeLessThan(12)
  expect(text).not.toMatch(/\{[a-z-]+\}/)
})

test('with console: false there are no pages, sessions or links', async () => {
  await using without = await startApp({ console: false })
  const headers = ownPage
  for (const [path, options] of [
    ['/console', {}],
    ['/console/jobs', {}],
    ['/api/session', { token: null, headers, body: { token: without.secret } }],
    ['/api/session/codes', { method: 'POST' }],
  ] as const) {
    const answer = await without.fetch(path, options)
    expect([path, answer.status, ((await answer.json()) as { error: { message: string } }).error.message]).toEqual([
      path,
      404,
      "The console is switched off by 'console: false' in infer.yaml.",
    ])
  }
  expect((await without.fetch('/', { token: null })).url).toBe(`${without.url}/docs`)
})
