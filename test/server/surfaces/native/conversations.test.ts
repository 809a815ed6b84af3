import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

const base = '/api/conversations'
type Body = Record<string, unknown> & { id: string; revision: number; error: Record<string, unknown> }

let app: TestApp
let organizationId: string
/** Two tokens of an organization that stores content, and one of an organization that does not. */
const tokens = { one: '', two: '', other: '' }

async function ask(method: string, path: string, body?: unknown, token = tokens.one) {
  const response = await app.fetch(path, { method, token, ...(body === undefined ? {} : { body }) })
  return { status: response.status, body: (await response.json()) as Body }
}
async function ok(method: string, path: string, body?: unknown, token?: string): Promise<Body> {
  const answer = await ask(method, path, body, token)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body
}
const listed = async (query = '', token?: string) =>
  (await ok('GET', `${base}${query}`, undefined, token)) as unknown as {
    conversations: Body[]
    folders: string[]
    stored: boolean
    next_cursor: string | null
  }
const titles = async (query: string) => (await listed(query)).conversations.map(({ title }) => title)

const message = (id: string, parent_id: string | null, text: string, more = {}) => ({
  id,
  parent_id,
  role: parent_id === null ? 'user' : 'assistant',
  text,
  ...more,
})

beforeAll(async () => {
  app = await startApp()
  const scopes = ['user:read', 'user:write', 'admin:read', 'admin:write'] as const
  const made = await makeOrganization(app, { scopes: [...scopes] })
  organizationId = made.organizationId
  tokens.one = made.secret
  tokens.other = (await makeOrganization(app)).secret
  const second = await app.fetch(`/api/organizations/${organizationId}/tokens`, {
    token: tokens.one,
    body: { name: 'two', scopes: ['user:read', 'user:write'] },
  })
  tokens.two = ((await second.json()) as { secret: string }).secret
})
afterAll(() => app[Symbol.asyncDispose]())

test('without the content of calls nothing is kept; the organization itself can change that', async () => {
  expect(await listed()).toMatchObject({ conversations: [], stored: false })
  const refused = await ask('POST', base, { messages: [message('a', null, 'canary')] })
  expect(refused).toMatchObject({ status: 403, body: { error: { code: 'role_not_allowed' } } })
  expect(refused.body.error['message']).toContain('call_storage')
  const organization = await ok('PATCH', `/api/organizations/${organizationId}`, { call_storage: 'content' })
  expect(organization).toMatchObject({ organization: { call_storage: 'content' } })
  expect(await listed()).toMatchObject({ conversations: [], stored: true })
})

test('a conversation with branches is created, changed, exported and deleted', async () => {
  const made = await ok('POST', base, {
    system: 'Be brief.',
    parameters: { temperature: 0.5 },
    current_id: 'b',
    messages: [
      message('a', null, 'What is\n a  "quine"?'),
      message('b', 'a', 'A program.', { model: 'm', reasoning: 'Let me\nthink.', figures: { outputTokens: 3 } }),
    ],
  })
  expect(made).toMatchObject({ title: 'What is a "quine"?', revision: 1, message_count: 2, folder: null })
  const path = `${base}/${made.id}`
  const changed = await ok('PATCH', path, {
    revision: 1,
    title: 'Quines',
    folder: 'Computing',
    current_id: 'c',
    messages: [message('c', 'a', 'Another.', { model: 'n', tool_calls: [{ id: '1', name: 'f', arguments: '{}' }] })],
  })
  expect(changed).toMatchObject({ title: 'Quines', folder: 'Computing', revision: 2, message_count: 3 })
  const conflict = await ask('PATCH', path, { revision: 1, title: 'Late' })
  expect(conflict).toMatchObject({ status: 409, body: { error: { code: 'version_conflict', revision: 2 } } })
  const whole = await ok('GET', path)
  expect(whole).toMatchObject({
    system: 'Be brief.',
    parameters: { temperature: 0.5 },
    current_id: 'c',
    messages: [
      message('a', null, 'What is\n a  "quine"?'),
      { id: 'b', parent_id: 'a', text: 'A program.', model: 'm', reasoning: 'Let me\nthink.' },
      { id: 'c', parent_id: 'a', text: 'Another.' },
    ],
  })
  expect(await ok('GET', `${path}/export`)).toEqual(whole)
  const markdown = await app.fetch(`${path}/export?format=markdown`, { token: tokens.one })
  expect(markdown.headers.get('content-disposition')).toBe(`attachment; filename="${made.id}.md"`)
  expect(await markdown.text()).toBe(
    '# Quines\n\n## System\n\nBe brief.\n\n## User\n\nWhat is\n a  "quine"?\n\n## n\n\nAnother.\n\n```\nf({})\n```\n',
  )
  expect((await listed('?folder=Computing')).folders).toEqual(['Computing'])
  expect(await ok('DELETE', path)).toEqual({ id: made.id, object: 'conversation', deleted: true })
  expect((await ask('GET', path)).status).toBe(404)
})

test('a folder is renamed, joined with another one and deleted, and its conversations stay as they are', async () => {
  const made: string[] = []
  for (const folder of ['Old', 'Old', 'Other', null])
    made.push((await ok('POST', base, { title: `in ${folder}`, folder, messages: [message('a', null, 'x')] })).id)
  const move = (folder: string, to: string | null, token?: string) =>
    ask('PATCH', '/api/conversation-folders', { folder, to }, token)
  expect(await move('Old', 'New')).toMatchObject({ status: 200, body: { moved: 2 } })
  expect(await titles('?folder=New')).toEqual(['in Old', 'in Old'])
  expect((await ask('GET', `${base}/${made[0]}`)).body).toMatchObject({ folder: 'New', revision: 2 })
  expect((await move('New', 'Other')).body).toMatchObject({ moved: 2 })
  expect((await listed()).folders).toEqual(['Other'])
  // Others have folders of their own.
  expect((await move('Other', null, tokens.two)).status).toBe(404)
  expect((await move('Other', null)).body).toMatchObject({ moved: 3 })
  expect((await titles('?folder=')).slice(0, 4)).toEqual(['in null', 'in Other', 'in Old', 'in Old'])
  const gone = await move('Other', null)
  expect([gone.status, gone.body.error['message']]).toEqual([
    404,
    "There is no folder 'Other'. GET /api/conversations lists yours.",
  ])
})

test('a search looks into titles and texts, in any case, page by page', async () => {
  for (const [title, text] of [
    ['First', 'the ÄPFEL of the garden'],
    ['Second äpfel', 'nothing'],
    ['Third', 'user text role'],
  ] as const)
    await ok('POST', base, { title, messages: [message('a', null, text)] })
  expect(await titles('?search=%C3%A4pfel')).toEqual(['Second äpfel', 'First'])
  expect(await titles('?search=parent_id')).toEqual([])
  const first = await listed('?search=%C3%A4pfel&limit=1')
  expect(first.conversations.map(({ title }) => title)).toEqual(['Second äpfel'])
  expect(await titles(`?search=%C3%A4pfel&limit=1&after=${first.next_cursor}`)).toEqual(['First'])
})

test.each(['two', 'other'] as const)('nobody else reaches a conversation: token %s', async who => {
  const { id } = await ok('POST', base, { messages: [message('a', null, 'secret')] })
  const token = tokens[who]
  expect((await listed('?search=secret', token)).conversations).toEqual([])
  expect((await listed(`?after=${id}`, token)).conversations).toEqual([])
  await ok('PATCH', `${base}/${id}`, { title: 'mine' })
  for (const [method, path] of [
    ['GET', `${base}/${id}`],
    ['GET', `${base}/${id}/export`],
    ['DELETE', `${base}/${id}`],
  ] as const)
    expect((await ask(method, path, undefined, token)).status, method).toBe(404)
  const change = await ask('PATCH', `${base}/${id}`, { title: 'taken' }, token)
  expect(change.status).toBe(who === 'two' ? 404 : 403)
  expect(await ok('GET', `${base}/${id}`)).toMatchObject({ title: 'mine' })
})

test.each([
  ['an unknown field', { title: 'x', colour: 'red' }, 400],
  ['an id with a blank', { messages: [message('a b', null, 'x')] }, 400],
  ['a parent that does not exist', { messages: [message('a', 'x', 'x')] }, 400],
  ['a text that is too long', { messages: [message('a', null, '.'.repeat(500_001))] }, 400],
  [
    'a conversation that is too long',
    { messages: ['a', 'b', 'c'].map(id => message(id, null, '.'.repeat(400_000))) },
    413,
  ],
  ['parameters that are too long', { parameters: { a: '.'.repeat(20_001) } }, 400],
])('%s is refused', async (_, body, status) => {
  const answer = await ask('POST', base, body)
  expect([answer.status, typeof answer.body.error['message']]).toEqual([status, 'string'])
})
