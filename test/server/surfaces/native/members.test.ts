import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { startApp, type TestApp } from '../../../_app.ts'

let app: TestApp
beforeAll(async () => void (app = await startApp()))
afterAll(() => app[Symbol.asyncDispose]())

// oxlint-disable-next-line no-explicit-any
type Json = any
const read = (text: string): Json => JSON.parse(text)
async function ask(method: string, path: string, body?: unknown, token: string = app.secret) {
  const response = await app.fetch(path, { method, token, ...(body === undefined ? {} : { body }) })
  const text = await response.text()
  return { status: response.status, body: read(text), text }
}
async function ok(method: string, path: string, body?: unknown, token?: string): Promise<Json> {
  const answer = await ask(method, path, body, token)
  expect(answer.status, `${method} ${path} ${answer.text}`).toBeLessThan(300)
  return answer.body
}
const all = ['user:read', 'user:write', 'admin:read', 'admin:write']
const scopesOf = { viewer: ['user:read'], member: ['user:read', 'user:write'], admin: all, owner: all }
type Role = keyof typeof scopesOf

interface Team {
  path: string
  /** Users by role, each with a token that has all scopes of the role. */
  users: Record<Role, { id: string; tokenId: string; secret: string }>
  /** A token without a user. */
  secret: string
}

async function team(): Promise<Team> {
  const { organization } = await ok('POST', '/api/organizations', { name: newId('org') })
  const path = `/api/organizations/${organization.id}`
  const { secret } = await ok('POST', `${path}/tokens`, { name: 'service', scopes: all })
  const users = {} as Team['users']
  for (const role of Object.keys(scopesOf) as Role[]) {
    const { user } = await ok('POST', `${path}/members`, { name: role, email: `${role}@example.com`, role })
    const made = await ok('POST', `${path}/tokens`, { name: role, scopes: scopesOf[role], user_id: user.id })
    users[role] = { id: user.id, tokenId: made.token.id, secret: made.secret }
  }
  return { path, users, secret }
}

describe('a user', () => {
  test('is listed with the number of tokens and the last use, in pages', async () => {
    const { path, users } = await team()
    await ok('GET', '/api/me', undefined, users.owner.secret)
    const first = await ok('GET', `${path}/members?limit=3`)
    expect(first.users.map((user: Json) => user.role)).toEqual(['owner', 'admin', 'member'])
    const second = await ok('GET', `${path}/members?limit=3&after=${first.next_cursor}`)
    expect(second).toMatchObject({ users: [{ role: 'viewer', active_tokens: 1 }], has_more: false, next_cursor: null })
    expect((await ok('GET', `${path}/members/${users.viewer.id}`)).user).toEqual(second.users[0])
  })

  test.each<[string, object, number, string]>([
    ['no e-mail address', { email: 'ada' }, 400, 'email'],
    ['an address of another user in other case', { email: 'OWNER@example.com' }, 409, 'email'],
    ['an unknown role', { role: 'god' }, 400, 'role'],
    ['an id', { id: newId('user') }, 400, 'id'],
    ['an organization', { organization_id: newId('org') }, 400, 'organization_id'],
    ['an empty name', { name: ' ' }, 400, 'name'],
  ])('is not created or changed with %s', async (_, fields, status, param) => {
    const { path, users } = await team()
    const made = await ask('POST', `${path}/members`, { name: 'A', email: 'a@example.com', ...fields })
    expect([made.status, made.body.error.param]).toEqual([status, param])
    const changed = await ask('PATCH', `${path}/members/${users.viewer.id}`, fields)
    expect([changed.status, changed.body.error.param]).toEqual([status, param])
  })

  test('of another organization is not found', async () => {
    const [one, other] = [await team(), await team()]
    for (const id of [other.users.viewer.id, newId('user')])
      for (const [method, body] of [
        ['GET', undefined],
        ['PATCH', { name: 'x' }],
        ['DELETE', undefined],
      ] as const) {
        const refused = await ask(method, `${one.path}/members/${id}`, body, one.secret)
        expect([refused.status, refused.body.error.code]).toEqual([404, 'not_found'])
      }
    const stolen = await ask('POST', `${one.path}/tokens`, { name: 'x', user_id: other.users.viewer.id }, one.secret)
    expect([stolen.status, stolen.body.error.param]).toEqual([400, 'user_id'])
  })
})

describe('roles', () => {
  test.each<[Role, string[], number]>([
    ['viewer', ['user:read'], 201],
    ['viewer', ['user:read', 'user:write'], 403],
    ['member', ['user:write'], 201],
    ['member', ['admin:read'], 403],
    ['admin', all, 201],
    ['owner', all, 201],
  ])('a token of a %s may have %j: %i', async (role, scopes, status) => {
    const { path, users } = await team()
    const made = await ask('POST', `${path}/tokens`, { name: 'x', scopes, user_id: users[role].id })
    expect(made.status, made.text).toBe(status)
    const changed = await ask('PATCH', `${path}/tokens/${users[role].tokenId}`, { scopes })
    expect(changed.status).toBe(status === 201 ? 200 : 403)
  })

  test('a token made by the token of a user is of the same user', async () => {
    const { path, users } = await team()
    const { token, secret } = await ok('POST', `${path}/tokens`, { name: 'mine' }, users.admin.secret)
    expect(token.user_id).toBe(users.admin.id)
    const listed = await ok('GET', `${path}/tokens?user_id=${users.admin.id}`)
    expect(listed.tokens.map((one: Json) => one.id)).toEqual([token.id, users.admin.tokenId])
    expect((await ok('GET', '/api/me', undefined, secret)).token.user_id).toBe(users.admin.id)
  })

  test('an administrator gets no rights of an owner: not by users, not by tokens', async () => {
    const { path, users } = await team()
    const { owner, admin, member } = users
    for (const [method, to, body] of [
      ['POST', `${path}/members`, { name: 'x', email: 'x@example.com', role: 'owner' }],
      ['PATCH', `${path}/members/${admin.id}`, { role: 'owner' }],
      ['PATCH', `${path}/members/${owner.id}`, { name: 'x' }],
      ['DELETE', `${path}/members/${owner.id}`, undefined],
      ['POST', `${path}/tokens`, { name: 'x', user_id: owner.id }],
      ['POST', `${path}/tokens`, { name: 'x', user_id: null }],
      ['PATCH', `${path}/tokens/${owner.tokenId}`, { name: 'x' }],
      ['PATCH', `${path}/tokens/${admin.tokenId}`, { user_id: owner.id }],
      ['PATCH', `${path}/tokens/${admin.tokenId}`, { user_id: null }],
      ['POST', `${path}/tokens/${owner.tokenId}/rotate`, {}],
      ['POST', `${path}/tokens/${owner.tokenId}/revoke`, undefined],
      ['DELETE', `${path}/tokens/${owner.tokenId}?force=true`, undefined],
    ] as const) {
      const { status, body: refused } = await ask(method, to, body, admin.secret)
      expect([method, to, status, refused.error.code]).toEqual([method, to, 403, 'role_not_allowed'])
    }
    await ok('PATCH', `${path}/members/${member.id}`, { role: 'admin' }, admin.secret)
    await ok('PATCH', `${path}/members/${member.id}`, { role: 'owner' }, owner.secret)
    await ok('PATCH', `${path}/members/${owner.id}`, { name: 'x' }, owner.secret)
  })

  test('with a lower role tokens lose scopes at once, and those without any are revoked', async () => {
    const { path, users } = await team()
    const { token: writer } = await ok('POST', `${path}/tokens`, {
      name: 'writes only',
      scopes: ['user:write'],
      user_id: users.admin.id,
    })
    const changed = await ok('PATCH', `${path}/members/${users.admin.id}`, { role: 'viewer' })
    expect(changed).toMatchObject({ tokens_narrowed: 1, tokens_revoked: 1, user: { role: 'viewer', active_tokens: 1 } })
    expect((await ok('GET', '/api/me', undefined, users.admin.secret)).token.scopes).toEqual(['user:read'])
    const refused = await ask('GET', `${path}/members`, undefined, users.admin.secret)
    expect(refused.body.error.code).toBe('insufficient_scope')
    expect((await ok('GET', `${path}/tokens/${writer.id}`)).token.status).toBe('revoked')
    await ok('PATCH', `${path}/members/${users.admin.id}`, { role: 'admin' })
    expect((await ok('GET', '/api/me', undefined, users.admin.secret)).token.scopes).toEqual(['user:read'])
  })

  test('the last owner stays', async () => {
    const { path, users } = await team()
    const own = `${path}/members/${users.owner.id}`
    expect((await ask('PATCH', own, { role: 'admin' })).body.error.code).toBe('conflict')
    expect((await ask('DELETE', own)).body.error.code).toBe('conflict')
    await ok('PATCH', `${path}/members/${users.admin.id}`, { role: 'owner' })
    await ok('PATCH', own, { role: 'admin' })
  })
})

describe('the work of a user', () => {
  test('is what ?user_id= lists: jobs and synchronous requests of the tokens of the user', async () => {
    const { path, users, secret } = await team()
    const job = { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'a' } }
    const listed = async (id: string): Promise<string[]> =>
      (await ok('GET', `/api/jobs?user_id=${id}`, undefined, secret)).jobs.map((one: Json) => one.token_id)
    await ok('POST', '/api/jobs', job, users.member.secret)
    await ok('POST', '/api/jobs', job, secret)
    const own = { model: 'fake', messages: [{ role: 'user', content: 'Hello' }] }
    await ok('POST', '/std/v1/chat/completions', own, users.owner.secret)
    expect(await listed(users.member.id)).toEqual([users.member.tokenId])
    await expect.poll(() => listed(users.owner.id)).toEqual([users.owner.tokenId])
    expect(await listed(users.viewer.id)).toEqual([])
    expect((await ok('GET', `/api/library?user_id=${users.owner.id}`, undefined, secret)).items).toEqual([])
    // It stays the work of the user after the user was removed.
    await ok('DELETE', `${path}/members/${users.member.id}`)
    expect(await listed(users.member.id)).toEqual([users.member.tokenId])
  })
})

describe('a removed user', () => {
  test('has no tokens left, is not found, and the address is free', async () => {
    const { path, users } = await team()
    const stream = await app.fetch('/api/events', { token: users.member.secret })
    const removed = await ok('DELETE', `${path}/members/${users.member.id}`)
    expect(removed).toEqual({ id: users.member.id, object: 'user', deleted: true, tokens_revoked: 1 })
    expect((await ask('GET', '/api/me', undefined, users.member.secret)).body.error.code).toBe('token_revoked')
    await stream.text()
    expect((await ask('GET', `${path}/members/${users.member.id}`)).status).toBe(404)
    await ok('POST', `${path}/members`, { name: 'again', email: 'member@example.com' })
  })

  test('who has the last tokens with admin:write is removed only with force', async () => {
    const { organization } = await ok('POST', '/api/organizations', { name: newId('org') })
    const path = `/api/organizations/${organization.id}`
    const { user } = await ok('POST', `${path}/members`, { name: 'A', email: 'a@example.com', role: 'admin' })
    await ok('POST', `${path}/tokens`, { name: 'x', scopes: all, user_id: user.id })
    const refused = await ask('DELETE', `${path}/members/${user.id}`)
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict'])
    expect((await ok('GET', `${path}/members/${user.id}`)).user.active_tokens).toBe(1)
    expect((await ok('DELETE', `${path}/members/${user.id}?force=true`)).tokens_revoked).toBe(1)
  })
})
