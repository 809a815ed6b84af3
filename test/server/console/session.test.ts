import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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

async function createToken(body: object): Promise<{ token: { id: string }; secret: string }> {
  const answer = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, { body: { name: 'test', ...body } })
  expect(answer.status).toBe(201)
  return (await answer.json()) as { token: { id: string }; secret: string }
}

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
      expect((await send(path, { ...headers, cookie }, { method })).status, path).toBe(401)
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
