import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { startApp, type TestApp } from '../../../_app.ts'

let app: TestApp
beforeAll(async () => void (app = await startApp({ trusted_proxies: ['127.0.0.1'] })))
afterAll(() => app[Symbol.asyncDispose]())

// oxlint-disable-next-line no-explicit-any
type Json = any
const secrets: string[] = []
async function ok(method: string, path: string, body?: unknown, token: string = app.secret): Promise<Json> {
  const response = await app.fetch(path, {
    method,
    token,
    headers: { 'x-forwarded-for': '203.0.113.9' },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  expect(response.status, `${method} ${path} ${text}`).toBeLessThan(300)
  const answer: Json = JSON.parse(text)
  if (answer.secret) secrets.push(answer.secret)
  return answer
}
const all = ['user:read', 'user:write', 'admin:read', 'admin:write']

async function make(): Promise<{ id: string; path: string; secret: string; tokenId: string; userId: string }> {
  const { organization } = await ok('POST', '/api/organizations', { name: newId('org') })
  const path = `/api/organizations/${organization.id}`
  const { user } = await ok('POST', `${path}/members`, { name: 'Ada', email: 'ada@example.com', role: 'owner' })
  const { token, secret } = await ok('POST', `${path}/tokens`, { name: 'first', scopes: all, user_id: user.id })
  return { id: organization.id, path, secret, tokenId: token.id, userId: user.id }
}

describe('the audit log', () => {
  test('has every act: who, from where, what, before and after', async () => {
    const { id, path, secret, tokenId, userId } = await make()
    await ok('PATCH', path, { name: `${id} renamed` }, secret)
    await ok('PATCH', `${path}/limits`, { pending_jobs: 5, monthly_spend_limit: 1.5 })
    const { token } = await ok('POST', `${path}/tokens`, { name: 'second', metadata: { team: 'a' } }, secret)
    await ok('PATCH', `${path}/tokens/${token.id}`, { name: 'renamed', rate_limit: { api: 5, jobs: null } }, secret)
    const rotated = await ok('POST', `${path}/tokens/${token.id}/rotate`, { overlap_seconds: 60 }, secret)
    await ok('DELETE', `${path}/tokens/${rotated.token.id}`, undefined, secret)
    await ok('POST', `${path}/suspend`)
    await ok('POST', `${path}/resume`)
    const { entries } = await ok('GET', `${path}/audit`, undefined, secret)
    expect(entries.map(({ action, target }: Json) => [action, target.id]).toReversed()).toEqual([
      ['organization.created', id],
      ['user.created', userId],
      ['token.created', tokenId],
      ['organization.updated', id],
      ['organization.updated', id],
      ['token.created', token.id],
      ['token.updated', token.id],
      ['token.rotated', token.id],
      ['token.revoked', rotated.token.id],
      ['organization.suspended', id],
      ['organization.resumed', id],
    ])
    const byAction = (action: string, at = 0): Json => entries.filter((one: Json) => one.action === action).at(at)
    expect(byAction('organization.updated', 1)).toMatchObject({
      actor: { type: 'token', token_id: tokenId, user_id: userId, address: '203.0.113.9', os_user: null },
      before: { name: expect.stringMatching(/^org_/) },
      after: { name: `${id} renamed` },
    })
    expect(byAction('organization.updated', 0)).toMatchObject({
      before: { pending_jobs: null, monthly_spend_limit: null },
      after: { pending_jobs: 5, monthly_spend_limit: 1.5 },
    })
    expect(byAction('token.updated')).toMatchObject({
      before: { name: 'second', rate_limit: { api: null, jobs: null } },
      after: { name: 'renamed', rate_limit: { api: 5, jobs: null } },
    })
    expect(byAction('token.rotated').after).toMatchObject({ next_token_id: rotated.token.id })
    // What did not change is not named.
    expect(Object.keys(byAction('token.updated').after)).toEqual(['name', 'rate_limit'])
  })

  test('is filtered by action, target and time, and read in pages', async () => {
    const { path, tokenId, userId } = await make()
    const ids = async (query: string): Promise<string[]> =>
      (await ok('GET', `${path}/audit?${query}`)).entries.map((one: Json) => one.target.id)
    expect(await ids('action=token.created')).toEqual([tokenId])
    expect(await ids(`target=${userId}`)).toEqual([userId])
    const now = Math.floor(Date.now() / 1000)
    expect(await ids(`since=${now + 60}`)).toEqual([])
    expect(await ids(`since=${now - 60}`)).toHaveLength(3)
    expect(await ids(`until=${now - 60}`)).toEqual([])
    const first = await ok('GET', `${path}/audit?limit=2`)
    expect([first.entries.length, first.has_more]).toEqual([2, true])
    const second = await ok('GET', `${path}/audit?limit=2&after=${first.next_cursor}`)
    expect(second.entries.map((one: Json) => one.action)).toEqual(['organization.created'])
    expect(second).toMatchObject({ has_more: false, next_cursor: null })
  })

  test.each(['after=5', 'after=audit_0', 'since=now', 'limit=0', 'who=me'])('refuses ?%s', async query => {
    const { path } = await make()
    expect((await app.fetch(`${path}/audit?${query}`)).status).toBe(400)
  })

  test('has nothing of a refused act', async () => {
    const { path, secret } = await make()
    const refused = await app.fetch(path, { method: 'PATCH', token: secret, body: { name: 'default' } })
    expect(refused.status).toBe(409)
    expect((await ok('GET', `${path}/audit`)).entries[0].action).toBe('token.created')
  })

  test('is kept when the organization is deleted', async () => {
    const { path } = await make()
    await ok('DELETE', path)
    const [last] = (await ok('GET', `${path}/audit`)).entries
    expect(last).toMatchObject({
      action: 'organization.deleted',
      after: { status: 'deleted', tokens_revoked: 1, users_removed: 1 },
    })
  })

  test('creation and revocation of tokens are events of the organization', async () => {
    const { path, secret } = await make()
    const stream = await app.fetch('/api/events?types=token.created,token.revoked', { token: secret })
    const { token } = await ok('POST', `${path}/tokens`, { name: 'seen' }, secret)
    await ok('DELETE', `${path}/tokens/${token.id}`, undefined, secret)
    let text = ''
    const decoder = new TextDecoder()
    for await (const part of stream.body!) {
      text += decoder.decode(part as Uint8Array, { stream: true })
      if (text.includes('token.revoked')) break
    }
    expect(text).toMatch(new RegExp(`event: token.created\\n.*"token_id":"${token.id}","name":"seen"`))
    expect(text).toMatch(new RegExp(`event: token.revoked\\n.*"token_id":"${token.id}"`))
  })

  test('neither it nor the database has a secret', async () => {
    expect(secrets.length).toBeGreaterThan(5)
    const files = ['infer.db', 'infer.db-wal'].map(name => readFileSync(join(app.dataDir, name)))
    for (const secret of secrets)
      for (const file of files) {
        expect(file.includes(secret)).toBe(false)
        expect(file.includes(secret.slice(22, 60))).toBe(false)
      }
  })
})
