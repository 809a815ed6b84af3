import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

interface Token {
  id: string
  name: string
  scopes: string[]
  status: string
  hint: string
  models: string[] | null
  created_at: number
  expires_at: number | null
  last_used_at: number | null
  created_by: string | null
  monthly_spend_limit: number | null
}
/** The members that any answer here may have. */
interface Body {
  error: { code: string; message: string; param: string | null; required_scope?: string }
  token: Token
  secret: string
  previous_valid_until: number
  organization: { id: string }
  tokens: Token[]
  has_more: boolean
  next_cursor: string | null
  data: { id: string }[]
  models: { model_id: string }[]
}

let app: TestApp
let base: string
let root: Token
/** Every secret of this file: none may appear again. */
const secrets: string[] = []

beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake'), fakeModel('qwen/big'), fakeModel('off', [], { enabled: false })] })
  base = `/api/organizations/${app.organizationId}/tokens`
  root = (await ask('GET', '/api/me')).body.token
})
afterAll(() => app[Symbol.asyncDispose]())

async function ask(method: string, path: string, body?: unknown, token: string | null = app.secret) {
  const response = await app.fetch(path, { method, body, token })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Body }
}
async function create(tokenRequest: object, by: { base: string; secret: string } = { base, secret: app.secret }) {
  const made = await ask('POST', by.base, { name: 'made', ...tokenRequest }, by.secret)
  expect(made.status, made.text).toBe(201)
  secrets.push(made.body.secret)
  return made.body
}
const me = async (secret: string) => (await app.fetch('/api/me', { token: secret })).status
const codeOf = async (secret: string) => {
  const { status, body } = await ask('GET', '/api/me', undefined, secret)
  return [status, body.error.code]
}
const chat = (secret: string, model: string) =>
  ask('POST', '/std/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }] }, secret)
const now = () => Math.floor(Date.now() / 1000)

describe('a new token', () => {
  test('has limits, hours and metadata, and a null or an absent one is none', async () => {
    const hours = { timezone: 'Europe/Berlin', ranges: [{ days: ['mon', 'fri'], from: '08:00', to: '24:00' }] }
    const given = {
      rate_limit: { api: 60, jobs: null },
      tokens_per_minute: 10_000,
      concurrent_requests: 2,
      monthly_spend_limit: 12.5,
      local_only: true,
      allowed_hours: hours,
      metadata: { team: 'a' },
    }
    const { token } = await create(given)
    expect(token).toMatchObject({ ...given, user_id: null })
    const { body } = await ask('PATCH', `${base}/${token.id}`, { rate_limit: null, monthly_spend_limit: 0 })
    expect(body.token).toMatchObject({ ...given, rate_limit: { api: null, jobs: null }, monthly_spend_limit: 0 })
    const cleared = { tokens_per_minute: null, concurrent_requests: null, monthly_spend_limit: null }
    const after = await ask('PATCH', `${base}/${token.id}`, { ...cleared, allowed_hours: null, metadata: null })
    expect(after.body.token).toMatchObject({ ...cleared, allowed_hours: null, metadata: null, name: 'made' })
  })

  test.each<[string, object, string]>([
    ['a rate of 0', { rate_limit: { api: 0 } }, 'rate_limit.api'],
    ['an unknown rate', { rate_limit: { files: 1 } }, 'rate_limit.files'],
    ['a negative spend limit', { monthly_spend_limit: -1 }, 'monthly_spend_limit'],
    ['a spend limit in words', { monthly_spend_limit: '5' }, 'monthly_spend_limit'],
    ['a time zone that is none', { allowed_hours: { timezone: 'Mars/Base', ranges: [] } }, 'allowed_hours'],
    [
      'hours that end before they begin',
      { allowed_hours: { timezone: 'UTC', ranges: [{ days: ['mon'], from: '18:00', to: '08:00' }] } },
      'allowed_hours',
    ],
    [
      'too much metadata',
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [at, ''])) },
      'metadata',
    ],
    ['metadata that is no text', { metadata: { a: 1 } }, 'metadata'],
    ['a user who does not exist', { user_id: newId('user') }, 'user_id'],
  ])('with %s is refused and names the field', async (_, fields, param) => {
    const { status, body } = await ask('POST', base, { name: 'bad', ...fields })
    expect([status, body.error.param?.startsWith(param)], body.error.message).toEqual([400, true])
  })

  test.each<[string, object, number]>([
    ['a lower limit', { monthly_spend_limit: 5, tokens_per_minute: 99 }, 201],
    ['the same limits', {}, 201],
    ['a higher one', { monthly_spend_limit: 10.01 }, 400],
    ['none', { monthly_spend_limit: null }, 400],
    ['none, for the rate', { rate_limit: null }, 400],
    ['a higher rate', { rate_limit: { api: 6, jobs: null } }, 400],
    ['no hours', { allowed_hours: null }, 400],
    ['work that may leave', { local_only: false }, 400],
    [
      'fewer hours',
      { allowed_hours: { timezone: 'UTC', ranges: [{ days: ['mon'], from: '09:00', to: '10:00' }] } },
      201,
    ],
    [
      'hours of another zone',
      { allowed_hours: { timezone: 'Asia/Tokyo', ranges: [{ days: ['mon'], from: '09:00', to: '10:00' }] } },
      400,
    ],
  ])('of a token with limits may have %s', async (_, fields, expected) => {
    const { secret } = await create({
      scopes: ['user:read', 'user:write', 'admin:write'],
      monthly_spend_limit: 10,
      local_only: true,
      rate_limit: { api: 5, jobs: null },
      allowed_hours: {
        timezone: 'UTC',
        ranges: [{ days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'], from: '00:00', to: '24:00' }],
      },
    })
    const { status, body } = await ask('POST', base, { name: 'child', ...fields }, secret)
    expect(status, JSON.stringify(body)).toBe(expected)
    if (status === 201 && !('monthly_spend_limit' in fields))
      expect(body.token).toMatchObject({ monthly_spend_limit: 10, local_only: true })
  })

  test('has the defaults: user scopes, all models, no expiry', async () => {
    const { token, secret } = await create({ name: 'plain' })
    expect(token).toEqual({
      id: expect.stringMatching(/^tok_[0-9A-Z]{26}$/),
      name: 'plain',
      scopes: ['user:read', 'user:write'],
      status: 'active',
      hint: `…${secret.slice(-4)}`,
      models: null,
      created_at: expect.closeTo(now(), -1),
      expires_at: null,
      last_used_at: null,
      created_by: root.id,
      user_id: null,
      rate_limit: { api: null, jobs: null },
      tokens_per_minute: null,
      concurrent_requests: null,
      monthly_spend_limit: null,
      local_only: false,
      allowed_hours: null,
      metadata: null,
    })
    expect(secret).toMatch(/^sk-infer-[0-9A-Za-z]{12}-[0-9A-Za-z]{49}$/)
    expect(await me(secret)).toBe(200)
  })

  const day = 86_400
  test.each<[string, object, (() => number) | null]>([
    ['user scopes never expire', {}, null],
    ['an admin scope expires in 90 days', { scopes: ['admin:read'] }, () => now() + 90 * day],
    ['unless it is said never to', { scopes: ['admin:write'], expires_at: null }, null],
    ['expires_in counts from now', { expires_in: 3600 }, () => now() + 3600],
    ['expires_at is taken as it is', { expires_at: 4_000_000_000 }, () => 4_000_000_000],
    ['a hundred years are the longest', { expires_in: 3_153_600_000 }, () => now() + 3_153_600_000],
  ])('%s', async (_, tokenRequest, expected) => {
    const { token, secret } = await create(tokenRequest)
    if (expected === null) expect(token.expires_at).toBeNull()
    else expect(Math.abs(token.expires_at! - expected())).toBeLessThan(expected() / 1000 + 60)
    expect(token.status).toBe('active')
    // The route exists: a token with only admin scopes lacks the scope of /api/me.
    expect([200, 403]).toContain(await me(secret))
  })

  test.each<[string, object, number, string, string | null]>([
    ['no name', { name: undefined }, 400, 'missing_required_parameter', 'name'],
    ['an empty name', { name: '' }, 400, 'invalid_value', 'name'],
    ['a name past 128', { name: 'x'.repeat(129) }, 400, 'string_above_max_length', 'name'],
    ['a name that is a number', { name: 7 }, 400, 'invalid_type', 'name'],
    ['an unknown scope', { scopes: ['root'] }, 400, 'invalid_scope', 'scopes'],
    ['a scope by another name', { scopes: ['admin'] }, 400, 'invalid_scope', 'scopes'],
    ['no scopes at all', { scopes: [] }, 400, 'invalid_value', 'scopes'],
    ['scopes as one text', { scopes: 'user:read' }, 400, 'invalid_type', 'scopes'],
    ['an expiry that is past', { expires_at: 1 }, 400, 'invalid_value', 'expires_at'],
    ['an expiry after more', { expires_in: 3_153_600_001 }, 400, 'invalid_value', 'expires_in'],
    ['an expiry at once', { expires_in: 0 }, 400, 'invalid_value', 'expires_in'],
    ['an expiry with a fraction', { expires_in: 1.5 }, 400, 'invalid_type', 'expires_in'],
    ['no models', { models: [] }, 400, 'invalid_value', 'models'],
    ['a model that is no text', { models: [1] }, 400, 'invalid_type', 'models[0]'],
  ])('with %s is refused and not created', async (_, tokenRequest, status, code, param) => {
    const before = (await ask('GET', `${base}?limit=1`)).body.tokens[0]!.id
    const { status: got, body } = await ask('POST', base, { name: 'made', ...tokenRequest })
    expect([got, body.error.code, body.error.param]).toEqual([status, code, param])
    expect((await ask('GET', `${base}?limit=1`)).body.tokens[0]!.id).toBe(before)
  })
})

describe('no token creates a token with more rights', () => {
  test.each<[string, string[], string]>([
    ['one more scope', ['admin:write', 'admin:read'], 'admin:read'],
    ['only a foreign one', ['user:write'], 'user:write'],
    ['the default scopes', [], 'user:read'],
  ])('%s', async (_, scopes, lacking) => {
    const { secret } = await create({ scopes: ['admin:write'] })
    const tokenRequest = { name: 'x', ...(scopes.length ? { scopes } : {}) }
    const { status, body } = await ask('POST', base, tokenRequest, secret)
    expect([status, body.error.code, body.error.required_scope]).toEqual([403, 'insufficient_scope', lacking])
  })

  test('no token gets more rights by widening another, or by rotating a stronger one', async () => {
    const { secret } = await create({ scopes: ['admin:write'] })
    const weak = await create({ scopes: ['user:read'] })
    const widened = await ask('PATCH', `${base}/${weak.token.id}`, { scopes: ['user:read', 'user:write'] }, secret)
    expect([widened.status, widened.body.error.code]).toEqual([403, 'insufficient_scope'])
    const rotated = await ask('POST', `${base}/${root.id}/rotate`, {}, secret)
    expect([rotated.status, rotated.body.error.code]).toEqual([403, 'insufficient_scope'])
    expect(await me(app.secret)).toBe(200)
  })

  test.each<[string, object, number]>([
    ['one of his own models', { models: ['qwen/big'] }, 201],
    ['a narrower pattern', { models: ['qwen/b*'] }, 201],
    ['a wider pattern', { models: ['*'] }, 403],
    ['another model', { models: ['fake'] }, 403],
    ['all models', { models: null }, 403],
  ])('a token limited to qwen/* can only grant %s: %o → %i', async (_, tokenRequest, status) => {
    const { secret } = await create({ scopes: ['admin:write', 'user:read', 'user:write'], models: ['qwen/*'] })
    const made = await ask('POST', base, { name: 'x', ...tokenRequest }, secret)
    expect(made.status, made.text).toBe(status)
    if (status === 403) expect(made.body.error.code).toBe('model_not_allowed')
  })

  test('and the default is its own limit', async () => {
    const { secret } = await create({ scopes: ['admin:write', 'user:read', 'user:write'], models: ['qwen/*'] })
    const made = await ask('POST', base, { name: 'x' }, secret)
    expect([made.status, made.body.token.models]).toEqual([201, ['qwen/*']])
    for (const attempt of [
      ask('PATCH', `${base}/${made.body.token.id}`, { models: null }, secret),
      ask('POST', `${base}/${root.id}/rotate`, {}, secret),
    ]) {
      const { status, text } = await attempt
      expect(status, text).toBe(403)
    }
  })
})

describe('models', () => {
  test.each<[string[], string, number]>([
    [['fake'], 'fake', 200],
    [['fake'], 'qwen/big', 403],
    [['qwen/*'], 'qwen/big', 200],
    [['*/big', 'other'], 'qwen/big', 200],
    [['*/big', 'other'], 'fake', 403],
    [['*'], 'off', 404],
  ])('a token for %j requests %s: %i', async (models, model, status) => {
    const { secret } = await create({ models })
    const chatted = await chat(secret, model)
    expect(chatted.status, chatted.text).toBe(status)
    const job = await ask(
      'POST',
      '/api/jobs',
      { task: 'std/embeddings', model_id: model, inputs: { input: 'a' } },
      secret,
    )
    expect(job.status).toBe(status === 200 ? 202 : status)
    if (status === 403)
      expect([chatted.body.error.code, chatted.body.error.param, job.body.error.code, job.body.error.param]).toEqual([
        'model_not_allowed',
        'model',
        'model_not_allowed',
        'model_id',
      ])
  })

  test('that a token may not use are in none of its lists and cannot be retrieved', async () => {
    const { secret } = await create({ models: ['qwen/*'] })
    const list = await ask('GET', '/std/v1/models', undefined, secret)
    expect(list.body.data.map(({ id }) => id)).toEqual(['qwen/big'])
    const status = await ask('GET', '/api/model-status', undefined, secret)
    expect(status.body.models.map(({ model_id }) => model_id)).toEqual(['qwen/big'])
    expect((await ask('GET', '/std/v1/models/qwen/big', undefined, secret)).status).toBe(200)
    const [foreign, absent] = await Promise.all(
      ['fake', 'none'].map(id => ask('GET', `/std/v1/models/${id}`, undefined, secret)),
    )
    expect([foreign!.status, foreign!.body.error.code]).toEqual([404, 'model_not_found'])
    const bare = (text: string, id: string) => text.replaceAll(id, 'ID').replace(/req_[0-9A-Z]{26}/, 'req')
    expect(bare(foreign!.text, 'fake')).toBe(bare(absent!.text, 'none'))
  })

  test('removed by a change are refused from the next request on', async () => {
    const { token, secret } = await create({})
    expect((await chat(secret, 'fake')).status).toBe(200)
    expect((await ask('PATCH', `${base}/${token.id}`, { models: ['qwen/*'] })).status).toBe(200)
    expect((await chat(secret, 'fake')).status).toBe(403)
    expect((await ask('PATCH', `${base}/${token.id}`, { models: null })).status).toBe(200)
    expect((await chat(secret, 'fake')).status).toBe(200)
  })
})

describe('the list', () => {
  test('is newest first, in pages, and has every token once', async () => {
    const own = await makeOrganization(app)
    const at = `/api/organizations/${own.organizationId}/tokens`
    const ids: string[] = []
    for (const name of ['b', 'c', 'd', 'e'])
      ids.unshift((await create({ name }, { base: at, secret: own.secret })).token.id)
    const seen: string[] = []
    let after = ''
    for (const more of [true, true, false]) {
      const { body } = await ask('GET', `${at}?limit=2${after}`, undefined, own.secret)
      seen.push(...body.tokens.map(({ id }) => id))
      expect([body.has_more, body.next_cursor]).toEqual([more, more ? seen.at(-1) : null])
      after = `&after=${body.next_cursor}`
    }
    expect(seen.slice(0, 4)).toEqual(ids)
    expect(new Set(seen).size).toBe(5)
  })

  test('can be filtered by status', async () => {
    const disabled = await create({})
    const revoked = await create({})
    const expired = await create({ expires_in: 1 })
    const active = await create({})
    await ask('PATCH', `${base}/${disabled.token.id}`, { status: 'disabled' })
    await ask('DELETE', `${base}/${revoked.token.id}`)
    const listed = async (status: string) => (await ask('GET', `${base}?limit=100&status=${status}`)).body.tokens
    await expect.poll(async () => (await listed('expired')).map(({ id }) => id)).toContain(expired.token.id)
    const all = { active, disabled, revoked, expired }
    for (const [status, { token }] of Object.entries(all)) {
      const tokens = await listed(status)
      expect(new Set(tokens.map(one => one.status))).toEqual(new Set([status]))
      expect(Object.values(all).filter(other => tokens.some(({ id }) => id === other.token.id))).toHaveLength(1)
      expect(tokens.some(({ id }) => id === token.id)).toBe(true)
    }
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=many', 'limit'],
    ['status=gone', 'status'],
    ['after=tok_1', 'after'],
    ['after=%00', 'after'],
    [`after=${newId('job')}`, 'after'],
  ])('refuses ?%s', async (query, param) => {
    const { status, body } = await ask('GET', `${base}?${query}`)
    expect([status, body.error.param]).toEqual([400, param])
  })
})

describe('a change', () => {
  test('sets the named fields and keeps the rest', async () => {
    const { token } = await create({ name: 'before', models: ['fake'] })
    const { status, body } = await ask('PATCH', `${base}/${token.id}`, {
      name: 'after',
      scopes: ['user:read', 'user:read'],
      expires_at: 4_000_000_000,
    })
    expect(status).toBe(200)
    const changed = { ...token, name: 'after', scopes: ['user:read'], expires_at: 4_000_000_000 }
    expect(body.token).toEqual({ ...changed, spend: expect.any(Object) as object })
    expect((await ask('GET', `${base}/${token.id}`)).body.token).toEqual(body.token)
    const nothing = await ask('PATCH', `${base}/${token.id}`, {})
    expect(nothing.body.token).toEqual(body.token)
  })

  test.each<[string, object, number, string]>([
    ['an unknown scope', { scopes: ['x'] }, 400, 'invalid_scope'],
    ['a status that is not one to set', { status: 'revoked' }, 400, 'invalid_value'],
    ['an expiry that is past', { expires_at: 1 }, 400, 'invalid_value'],
    ['an empty name', { name: '' }, 400, 'invalid_value'],
    ['an empty list of models', { models: [] }, 400, 'invalid_value'],
  ])('to %s is refused', async (_, change, status, code) => {
    const { token } = await create({})
    const refused = await ask('PATCH', `${base}/${token.id}`, change)
    expect([refused.status, refused.body.error.code]).toEqual([status, code])
    expect((await ask('GET', `${base}/${token.id}`)).body.token).toMatchObject(token)
  })

  test('to disabled refuses it at once, and to active accepts it again', async () => {
    const { token, secret } = await create({})
    expect(await me(secret)).toBe(200)
    const disabled = await ask('PATCH', `${base}/${token.id}`, { status: 'disabled' })
    expect(disabled.body.token.status).toBe('disabled')
    expect(await codeOf(secret)).toEqual([401, 'token_revoked'])
    await ask('PATCH', `${base}/${token.id}`, { status: 'active' })
    expect(await me(secret)).toBe(200)
  })

  test('of scopes counts from the next request on', async () => {
    const { token, secret } = await create({})
    await ask('PATCH', `${base}/${token.id}`, { scopes: ['user:write'] })
    expect(await codeOf(secret)).toEqual([403, 'insufficient_scope'])
  })

  test('of an unknown or revoked token', async () => {
    const { token } = await create({})
    await ask('DELETE', `${base}/${token.id}`)
    for (const [id, status, code] of [
      [newId('tok'), 404, 'not_found'],
      ['nonsense', 404, 'not_found'],
      [token.id, 409, 'conflict'],
    ] as const) {
      const refused = await ask('PATCH', `${base}/${id}`, { name: 'x' })
      expect([refused.status, refused.body.error.code]).toEqual([status, code])
    }
  })
})

describe('the end of a token', () => {
  test('revoked: refused at once, on both paths, again and again, for ever', async () => {
    for (const [method, suffix] of [
      ['DELETE', ''],
      ['POST', '/revoke'],
    ] as const) {
      const { token, secret } = await create({})
      expect(await me(secret)).toBe(200)
      for (let time = 0; time < 2; time++) {
        const { status, body } = await ask(method, `${base}/${token.id}${suffix}`)
        expect([status, body]).toEqual([200, { id: token.id, object: 'token', deleted: true }])
        expect(await codeOf(secret)).toEqual([401, 'token_revoked'])
      }
      expect((await ask('PATCH', `${base}/${token.id}`, { status: 'active' })).status).toBe(409)
      expect((await ask('POST', `${base}/${token.id}/rotate`, {})).status).toBe(409)
    }
    expect((await ask('DELETE', `${base}/${newId('tok')}`)).status).toBe(404)
  })

  test('revoked in the middle of a stream: the stream continues to its end', async () => {
    const { token, secret } = await create({})
    const response = await app.fetch('/std/v1/chat/completions', {
      token: secret,
      body: {
        model: 'fake',
        stream: true,
        messages: [{ role: 'user', content: 'mode:stream,tokens=30,rate=40' }],
      },
    })
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = (await reader.read()).value!
    await ask('DELETE', `${base}/${token.id}`)
    expect(await codeOf(secret)).toEqual([401, 'token_revoked'])
    expect(text).not.toContain('token29')
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      text += value
    }
    expect(text).toContain('token29')
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('expired: 401 token_expired from that second on', async () => {
    const { secret, token } = await create({ expires_in: 1 })
    await expect.poll(() => codeOf(secret).catch(() => 'still in')).toEqual([401, 'token_expired'])
    expect(Date.now()).toBeGreaterThanOrEqual(token.expires_at! * 1000)
    expect((await ask('POST', `${base}/${token.id}/rotate`, {})).body.error.code).toBe('conflict')
    await ask('PATCH', `${base}/${token.id}`, { expires_at: null })
    expect(await me(secret)).toBe(200)
  })

  test("the caller's own token is not revoked by mistake", async () => {
    const { token, secret } = await create({ scopes: ['admin:write', 'user:read'] })
    for (const [method, suffix] of [
      ['DELETE', ''],
      ['POST', '/revoke'],
    ] as const) {
      const own = await ask(method, `${base}/${token.id}${suffix}`, undefined, secret)
      expect([own.status, own.body.error.code]).toEqual([409, 'conflict'])
      expect(own.headers.get('x-should-retry')).toBe('false')
    }
    expect(await me(secret)).toBe(200)
    expect((await ask('DELETE', `${base}/${token.id}?force=true`, undefined, secret)).status).toBe(200)
    expect(await codeOf(secret)).toEqual([401, 'token_revoked'])
  })

  test('the last token that can create others is kept: it cannot be revoked, disabled or narrowed', async () => {
    const own = await makeOrganization(app)
    const at = `/api/organizations/${own.organizationId}/tokens`
    const { token: last } = (await ask('GET', '/api/me', undefined, own.secret)).body
    // A forced revoke of the caller's own token would leave none either, but force is explicit.
    const helper = await create({ scopes: ['user:read', 'admin:write'] }, { base: at, secret: own.secret })
    expect((await ask('DELETE', `${at}/${helper.token.id}`, undefined, own.secret)).status).toBe(200)
    for (const [method, path, body] of [
      ['DELETE', '', undefined],
      ['PATCH', '', { status: 'disabled' }],
      ['PATCH', '', { scopes: ['user:read'] }],
    ] as const) {
      const refused = await ask(method, `${at}/${last.id}${path}`, body, own.secret)
      expect([method, refused.status, refused.body.error.code]).toEqual([method, 409, 'conflict'])
    }
    expect((await ask('PATCH', `${at}/${last.id}`, { name: 'the last' }, own.secret)).status).toBe(200)
    expect(await me(own.secret)).toBe(200)
    expect((await ask('DELETE', `${at}/${last.id}?force=true`, undefined, own.secret)).status).toBe(200)
    expect(await codeOf(own.secret)).toEqual([401, 'token_revoked'])
  })

  test('two that revoke each other at once: one is kept', async () => {
    const own = await makeOrganization(app)
    const at = `/api/organizations/${own.organizationId}/tokens`
    const { token: first } = (await ask('GET', '/api/me', undefined, own.secret)).body
    const second = await create({ scopes: ['user:read', 'admin:write'] }, { base: at, secret: own.secret })
    const answers = await Promise.all([
      ask('DELETE', `${at}/${second.token.id}`, undefined, own.secret),
      ask('DELETE', `${at}/${first.id}`, undefined, second.secret),
    ])
    expect(answers.map(({ status }) => status)).toContain(200)
    expect([await me(own.secret), await me(second.secret)].filter(status => status === 200)).toHaveLength(1)
  })
})

describe('a rotation', () => {
  test('without overlap: a new secret with the same rights, the old one is refused', async () => {
    const { token, secret } = await create({ name: 'rolled', scopes: ['user:read'], models: ['fake'] })
    const { status, body } = await ask('POST', `${base}/${token.id}/rotate`)
    secrets.push(body.secret)
    expect(status).toBe(200)
    expect(body.token).toEqual({
      ...token,
      id: expect.not.stringContaining(token.id),
      hint: `…${body.secret.slice(-4)}`,
      created_at: expect.any(Number),
      created_by: token.id,
    })
    expect(body.previous_valid_until).toBeLessThanOrEqual(now())
    expect(await me(body.secret)).toBe(200)
    expect(await codeOf(secret)).toEqual([401, 'token_expired'])
  })

  test('with overlap: both work until the overlap ends', async () => {
    const { token, secret } = await create({})
    const { body } = await ask('POST', `${base}/${token.id}/rotate`, {
      overlap_seconds: 1,
    })
    secrets.push(body.secret)
    expect(await me(body.secret)).toBe(200)
    await expect.poll(() => codeOf(secret).catch(() => 'still in')).toEqual([401, 'token_expired'])
    expect(now()).toBeGreaterThanOrEqual(body.previous_valid_until)
    expect(await me(body.secret)).toBe(200)
  })

  test('never extends the life of the old one', async () => {
    const { token } = await create({ expires_in: 60 })
    const { body } = await ask('POST', `${base}/${token.id}/rotate`, {
      overlap_seconds: 3600,
    })
    secrets.push(body.secret)
    expect(body.previous_valid_until).toBe(token.expires_at)
  })

  test.each<[string, object, number, string]>([
    ['past a day', { overlap_seconds: 86_401 }, 400, 'invalid_value'],
    ['before now', { overlap_seconds: -1 }, 400, 'invalid_value'],
    ['in words', { overlap_seconds: 'a day' }, 400, 'invalid_type'],
  ])('with an overlap %s is refused', async (_, body, status, code) => {
    const { token, secret } = await create({})
    const refused = await ask('POST', `${base}/${token.id}/rotate`, body)
    expect([refused.status, refused.body.error.code]).toEqual([status, code])
    expect(await me(secret)).toBe(200)
  })

  test('of an unknown token', async () => {
    expect((await ask('POST', `${base}/${newId('tok')}/rotate`, {})).status).toBe(404)
  })
})

test("/api/me describes the caller's token as the list does", async () => {
  const { token, secret } = await create({})
  const { body } = await ask('GET', '/api/me', undefined, secret)
  expect(body.token).toEqual({ ...token, last_used_at: body.token.last_used_at })
  expect(body.organization.id).toBe(app.organizationId)
})

test('a wrong but well-formed secret is shown by its ends only', async () => {
  const { secret } = await create({})
  const wrong = secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0')
  const { status, body, headers } = await ask('GET', '/api/me', undefined, wrong)
  expect([status, body.error.code, headers.get('www-authenticate')]).toEqual([401, 'invalid_api_key', 'Bearer'])
  expect(body.error.message).toContain(`sk-…${wrong.slice(-4)}`)
  expect(body.error.message).not.toContain(wrong.slice(9, 21))
})

test('no secret is shown again: not in lists, not in metrics, not on the disk', async () => {
  expect(secrets.length).toBeGreaterThan(30)
  const pages: string[] = []
  let after = ''
  for (let more = true; more; ) {
    const page = await ask('GET', `${base}?limit=100${after}`)
    pages.push(page.text)
    more = page.body.has_more
    after = `&after=${page.body.next_cursor}`
  }
  for (const path of [`${base}/${root.id}`, '/api/me', '/api/model-status', '/openapi.json'])
    pages.push((await ask('GET', path)).text)
  pages.push(await (await app.fetch('/metrics')).text())
  for (const file of ['infer.db', 'infer.db-wal', 'server.json'])
    pages.push(readFileSync(join(app.dataDir, file), 'latin1'))
  const all = pages.join('\n')
  for (const secret of [...secrets, app.secret]) {
    expect(all.includes(secret)).toBe(false)
    expect(all.includes(secret.slice(22))).toBe(false)
  }
})
