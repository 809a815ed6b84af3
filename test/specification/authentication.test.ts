import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TestApp } from '../_app.ts'
import { ask, chat, organizationWith, startSpecified } from './_specification.ts'

/** Sections 2.8 and 5 of the specification, by sentence. */

let app: TestApp
let tokens: string
beforeAll(async () => {
  app = await startSpecified()
  tokens = `/api/organizations/${app.organizationId}/tokens`
})
afterAll(() => app[Symbol.asyncDispose]())

const create = (body: object, secret?: string) => ask(app, 'POST', tokens, body, secret)

describe('2.8 API token', () => {
  test('a token has id, name, scopes (array of strings) and status ("active" seen)', async () => {
    const { body } = await create({ name: 'n', scopes: ['user:read'] })
    expect(body.token).toMatchObject({
      id: expect.any(String) as string,
      name: 'n',
      scopes: ['user:read'],
      status: 'active',
    })
  })

  test('the creation response also has `secret` (string, returned once)', async () => {
    const { body } = await create({ name: 'n', scopes: ['user:read'] })
    expect(body.secret).toEqual(expect.any(String))
    for (const path of [tokens, `${tokens}/${body.token.id}`]) {
      const read = await ask(app, 'GET', path)
      expect(read.status).toBe(200)
      expect(JSON.stringify(read.body)).not.toContain(body.secret)
      expect(JSON.stringify(read.body)).not.toContain('"secret"')
    }
  })
})

describe('5 Authentication', () => {
  test('every API request carries `Authorization: Bearer <API_TOKEN>`', async () => {
    expect((await ask(app, 'GET', '/api/me', undefined, null)).status).toBe(401)
    expect((await ask(app, 'GET', '/api/me')).status).toBe(200)
  })

  test('tokens are created with POST /api/organizations/{orgId}/tokens', async () => {
    const { status, body } = await create({ name: 'made', scopes: ['user:read', 'user:write'] })
    expect(status).toBe(201)
    expect((await ask(app, 'GET', '/api/me', undefined, body.secret)).body.token.id).toBe(body.token.id)
  })

  test.each(['user:read', 'user:write', 'admin:read', 'admin:write'])('there is the scope %s', async scope => {
    const { body } = await create({ name: scope, scopes: [scope] })
    expect(body.token.scopes).toEqual([scope])
  })

  test('the `secret` of a new token is returned only once, at creation: a repeated request does not return it', async () => {
    const headers = { 'idempotency-key': 'one secret' }
    const send = () => app.fetch(tokens, { body: { name: 'once', scopes: ['user:read'] }, headers })
    const { secret } = (await (await send()).json()) as { secret: string }
    expect(await (await send()).text()).not.toContain(secret)
  })

  describe('a missing, invalid, deleted or expired token gives 401', () => {
    test('missing', async () => {
      expect(await ask(app, 'GET', '/api/me', undefined, null)).toMatchObject({
        status: 401,
        body: { error: { code: 'missing_api_key' } },
      })
    })
    test('invalid', async () => {
      expect(await ask(app, 'GET', '/api/me', undefined, 'sk-infer-wrong')).toMatchObject({
        status: 401,
        body: { error: { code: 'invalid_api_key' } },
      })
    })
    test('deleted', async () => {
      const { body } = await create({ name: 'gone', scopes: ['user:read'] })
      await ask(app, 'DELETE', `${tokens}/${body.token.id}`)
      expect(await ask(app, 'GET', '/api/me', undefined, body.secret)).toMatchObject({
        status: 401,
        body: { error: { code: 'token_revoked' } },
      })
    })
    test('expired', async () => {
      const { secret } = await organizationWith(app, {}, { expiresAt: Date.now() - 1 })
      expect(await ask(app, 'GET', '/api/me', undefined, secret)).toMatchObject({
        status: 401,
        body: { error: { code: 'token_expired' } },
      })
    })
  })

  test('a token lacking the scope required by the endpoint gives 403', async () => {
    const { body } = await create({ name: 'reader', scopes: ['user:read'] })
    expect(await ask(app, 'POST', '/std/v1/chat/completions', chat, body.secret)).toMatchObject({
      status: 403,
      body: { error: { code: 'insufficient_scope', required_scope: 'user:write' } },
    })
  })

  test('an organization restricted from a region gives 403', async () => {
    const { secret } = await organizationWith(app, { region: 'EU' })
    expect(await ask(app, 'POST', '/std/v1/chat/completions', chat, secret)).toMatchObject({
      status: 403,
      body: { error: { code: 'region_restricted' } },
    })
  })
})
